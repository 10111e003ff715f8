import { test } from "node:test";
import { Locks } from "../../../../locks.js";
import { serveCrowd } from "../../../../test-support/crowd.fixture.js";
import { memoryEngine } from "../../index.js";

test("2,000 jobs of one process share ten permits, and a lease held beside them is not lost", async () => {
  await using locks = new Locks(memoryEngine());
  await serveCrowd(locks, 2_000);
});
