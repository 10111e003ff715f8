import { test } from "node:test";
import { serveCrowd } from "../../../../test-support/crowd.fixture.js";
import { RedisTestServer } from "../support/test-server.fixture.js";

for (const jobs of [10_000, 100_000]) {
  test(`${jobs} jobs of one process share ten permits, and a lease beside them is kept`, async () => {
    await using redis = await RedisTestServer.start();
    await using locks = redis.locks();
    await serveCrowd(locks, jobs);
  });
}
