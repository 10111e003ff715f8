import assert from "node:assert/strict";

const TRIES = 6;

/** How long the work took, in milliseconds. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

/**
 * Repeats the work until it was quick once. Slow code is slow each time; code that is slow because
 * of other work on the machine is quick sooner or later. `work` gets the number of the try, and
 * returns the time it took.
 */
export async function soon(
  withinMs: number,
  work: (attempt: number) => Promise<number>,
): Promise<void> {
  const slow: number[] = [];
  while (slow.length < TRIES) {
    const tookMs = await work(slow.length);
    if (tookMs < withinMs) return;
    slow.push(Math.round(tookMs));
  }
  assert.fail(`it took ${slow.join(", ")} ms, never less than ${withinMs} ms`);
}
