import { test } from "node:test";
import { connect } from "../../../../connect.js";
import { serveCrowd } from "../../../../test-support/crowd.fixture.js";
import { SqliteTestServer } from "../support/test-server.fixture.js";

for (const jobs of [10_000, 100_000]) {
  test(`${jobs} jobs of one process share ten permits, and a lease held beside them is not lost`, async () => {
    await using server = new SqliteTestServer();
    await using locks = await connect(server.url);
    await serveCrowd(locks, jobs);
  });
}
