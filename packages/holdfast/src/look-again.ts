import type { Backend } from "./backend.js";
import { type Cancellation, Canceller } from "./canceller.js";
import { sleep } from "./clock.js";
import { exponential, type RetryStrategy } from "./retry.js";

/** Where the backend can neither keep a line nor tell of changes, looking again is all there is. */
const POLLING: RetryStrategy = exponential({ minMs: 20, maxMs: 1_000 });
/** Where it tells of changes, a look is only for the notice that got lost. */
const WATCHING: RetryStrategy = exponential({ minMs: 1_000, maxMs: 1_000 });

/** How often to look again while a resource is busy, where the caller has no wish of its own. */
export function ownPace({ engine }: Backend): RetryStrategy {
  return engine.watch ? WATCHING : POLLING;
}

/** Waits for so long, or until the engine says that something changed there. */
export async function untilChange(
  backend: Backend,
  resource: string,
  delayMs: number,
  signal: Cancellation | undefined,
): Promise<void> {
  const changed = new Canceller();
  const unfollow = changed.follow(signal);
  const stop = backend.engine.watch?.onChange((name) => {
    if (name === resource) changed.abort();
  });
  try {
    await sleep(backend.clock, delayMs, changed);
  } catch (error) {
    if (signal?.aborted) throw error;
  } finally {
    stop?.();
    unfollow();
  }
}
