import assert from "node:assert/strict";
import type { Locks } from "../locks.js";

const PERMITS = 10;
const BYSTANDER_TTL_MS = 5_000;
const AT_ONCE = 2_000;
// A busy machine is no failure.
const PATIENT = { waitMs: Infinity, callTimeoutMs: 60_000 };

const turn = () => new Promise((turned) => setImmediate(turned));

/**
 * This many jobs of one process want one of ten permits at once, while a lease with a short ttl is
 * held beside them. All get their permit in the order of their requests, and the lease stays held.
 */
export async function serveCrowd(locks: Locks, jobs: number): Promise<void> {
  const bystander = await locks.acquire("bystander", { ttlMs: BYSTANDER_TTL_MS });
  const semaphore = locks.semaphore("permits", { permits: PERMITS });
  let [working, most] = [0, 0];
  const served: number[] = [];
  const crowd: Promise<void>[] = [];
  const start = (i: number) =>
    semaphore.run(PATIENT, async (lease) => {
      served.push(i);
      most = Math.max(most, ++working);
      await turn();
      assert.ok(lease.held);
      working--;
    });
  while (crowd.length < jobs) {
    crowd.push(start(crowd.length));
    // On a slow machine, a hundred thousand calls in one turn take longer than a lease lives.
    if (crowd.length % AT_ONCE === 0) await turn();
  }
  await Promise.all(crowd);
  assert.equal(served.length, jobs);
  assert.ok(
    served.every((job, turn) => job === turn),
    "they are served in their order",
  );
  assert.ok(most <= PERMITS, `${most} worked at once`);
  assert.ok(bystander.held, "the bystander's lease is lost");
  assert.ok(!bystander.signal.aborted);
  await bystander.release();
}
