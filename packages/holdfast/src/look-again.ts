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

/**
 * What the engine announces of one resource, from the moment on at which this is made. A notice may
 * overtake the answer to a look that was carried out before it, so it is kept for whoever comes next.
 */
export class Changes {
  readonly #backend: Backend;
  readonly #stop: (() => void) | undefined;
  #seen = false;
  #wake: () => void = () => {};

  constructor(backend: Backend, resource: string) {
    this.#backend = backend;
    this.#stop = backend.engine.watch?.onChange((name) => {
      if (name !== resource) return;
      this.#seen = true;
      this.#wake();
    });
  }

  /** Before a look is sent: what was announced until now, it will see for itself. */
  forget(): void {
    this.#seen = false;
  }

  /** Waits for so long, or for a change that the last look may have missed. */
  async next(delayMs: number, signal: Cancellation | undefined): Promise<void> {
    if (this.#seen) return;
    const changed = new Canceller();
    const unfollow = changed.follow(signal);
    this.#wake = () => changed.abort();
    try {
      await sleep(this.#backend.clock, delayMs, changed);
    } catch (error) {
      if (signal?.aborted) throw error;
    } finally {
      this.#wake = () => {};
      unfollow();
    }
  }

  end(): void {
    this.#stop?.();
  }
}
