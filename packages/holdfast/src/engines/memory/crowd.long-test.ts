import { test } from "node:test";
import { serveCrowd } from "../../crowd.fixture.js";
import { Locks } from "../../locks.js";
import { memoryEngine } from "./index.js";

for (const jobs of [10_000, 100_000]) {
  test(`${jobs} jobs of one process share ten permits, and a lease beside them is kept`, async () => {
    await using locks = new Locks(memoryEngine());
    await serveCrowd(locks, jobs);
  });
}
