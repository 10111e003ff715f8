import assert from "node:assert/strict";

const TRIES = 6;

/** How long it took, in milliseconds. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

/**
 * Plays a scene until it was quick once. What is slow by itself is slow each time; what is slow because
 * the machine has other work to do is quick at one time or another. The scene is told which
 * try this is, and gives what it took.
 */
export async function soon(
  withinMs: number,
  scene: (attempt: number) => Promise<number>,
): Promise<void> {
  const slow: number[] = [];
  while (slow.length < TRIES) {
    const tookMs = await scene(slow.length);
    if (tookMs < withinMs) return;
    slow.push(Math.round(tookMs));
  }
  assert.fail(`it took ${slow.join(", ")} ms, never less than ${withinMs} ms`);
}
