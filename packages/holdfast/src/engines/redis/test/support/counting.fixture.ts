import assert from "node:assert/strict";
import { startRedis } from "@holdfast/servers";
import { exponential } from "../../../../core/acquiring/retry.js";
import { HoldfastError } from "../../../../errors.js";
import type { Locks } from "../../../../locks.js";
import { assertIncrements, Register } from "../../../../test-support/fenced-register.fixture.js";

export interface Counted {
  readonly writes: number;
  readonly longestWaitMs: number;
  readonly failures: readonly string[];
}

/**
 * All clients count in one register under one lock, while `disturb` runs. No write may be lost,
 * tokens must rise, and every client must have turns after the disturbance as well.
 */
export async function countWhile(
  everybody: readonly Locks[],
  resource: string,
  ttlMs: number,
  disturb: () => Promise<void>,
): Promise<Counted> {
  await using store = await startRedis();
  using register = new Register(store.port);
  const failures: string[] = [];
  const turns = everybody.map(() => 0);
  let longestWaitMs = 0;
  let enough = false;
  const count = async (locks: Locks, who: number) => {
    while (!enough) {
      const started = performance.now();
      try {
        const retry = exponential({ minMs: 20, maxMs: 200 });
        const lease = await locks.acquire(resource, { ttlMs, waitMs: 30_000, retry });
        longestWaitMs = Math.max(longestWaitMs, performance.now() - started);
        try {
          const value = await register.read(resource, lease.token);
          lease.assertHeld();
          await register.write(resource, lease.token, value + 1);
          turns[who]!++;
        } finally {
          await lease.release();
        }
      } catch (error) {
        if (!(error instanceof HoldfastError)) throw error;
        failures.push(error.code);
      }
    }
  };
  const counting = Promise.all(everybody.map(count));
  try {
    await disturb();
    const before = [...turns];
    const deadline = performance.now() + 40_000;
    const allHadOne = () => turns.every((turn, who) => turn > before[who]!);
    while (!allHadOne() && performance.now() < deadline) {
      await new Promise((later) => setTimeout(later, 20));
    }
    assert.ok(allHadOne(), `a client has no turns any more: ${before} became ${turns}`);
  } finally {
    enough = true;
    await counting;
  }
  const history = await register.history(resource);
  assertIncrements(history);
  return { writes: history.length, longestWaitMs: Math.round(longestWaitMs), failures };
}
