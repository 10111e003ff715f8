import { test } from "node:test";
import { Locks } from "../../../../locks.js";
import { serveCrowd } from "../../../../test-support/crowd.fixture.js";
import { memoryEngine } from "../../index.js";

for (const jobs of [10_000, 100_000]) {
  test(`${jobs} jobs of one process share ten permits, and a lease held beside them is not lost`, async () => {
    await using locks = new Locks(memoryEngine());
    await serveCrowd(locks, jobs);
  });
}
