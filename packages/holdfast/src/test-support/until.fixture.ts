import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";

const LOOK_EVERY_MS = 5;

/** Polls until check() is true; returns how long that took. */
export async function until(
  what: string,
  check: () => unknown,
  withinMs = 30_000,
): Promise<number> {
  const started = performance.now();
  for (;;) {
    if (await check()) return performance.now() - started;
    const tookMs = performance.now() - started;
    assert.ok(tookMs < withinMs, `${what}: not within ${withinMs} ms`);
    await sleep(LOOK_EVERY_MS);
  }
}
