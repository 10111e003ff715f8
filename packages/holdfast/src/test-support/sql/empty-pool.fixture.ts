import assert from "node:assert/strict";
import type { EngineError } from "../../errors.js";
import type { Locks } from "../../locks.js";
import { until } from "../until.fixture.js";

/** A pool of one connection, which the test can borrow, and locks that use this pool. */
interface SmallPool {
  readonly locks: Locks;
  borrow(): Promise<{ release(): void }>;
}

/** For a pool that lets callers wait. */
export async function expectEmptyPoolReported(pool: SmallPool, resource: string): Promise<void> {
  const { locks } = pool;
  await (await locks.acquire(resource)).release();
  const busy = await pool.borrow();
  const options = { callTimeoutMs: 200, waitMs: 0 };
  const failure = { effect: "none", retryable: true, reason: "other" };
  await assert.rejects(locks.acquire(resource, options), (error: EngineError) => {
    const { effect, retryable, reason } = error;
    assert.deepEqual({ effect, retryable, reason }, failure, error.message);
    return /^all connections of the pool were in use for \d+ ms; nothing was sent$/.test(
      error.message,
    );
  });
  busy.release();
  await untilNothingIsLeft(locks, resource);
  await (await locks.acquire(resource)).release();
}

/** For a pool that gives up by itself. */
export async function expectRefusingPoolReported(pool: SmallPool, resource: string): Promise<void> {
  const { locks } = pool;
  await (await locks.acquire(resource)).release();
  const busy = await pool.borrow();
  const failure = {
    effect: "none",
    reason: "other",
    message: /pool were in use; nothing was sent/,
  };
  await assert.rejects(locks.tryAcquire(resource), failure);
  busy.release();
}

export async function untilNothingIsLeft(locks: Locks, resource: string): Promise<void> {
  await until("nothing is left", async () => {
    const { holders, waiters } = await locks.inspect(resource);
    return holders.length + waiters.length === 0;
  });
}
