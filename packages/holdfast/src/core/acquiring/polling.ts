import type { Engine } from "../../engine.js";
import { exponential, type RetryStrategy } from "./retry.js";

/** Where the backend can neither keep a queue nor tell of changes, looking again is all there is. */
const POLLING: RetryStrategy = exponential({ minMs: 20, maxMs: 1_000 });
/** Where it tells of changes, a look is only for the notice that got lost. */
const WATCHING: RetryStrategy = exponential({ minMs: 1_000, maxMs: 1_000 });

/** How often to look again while a resource is busy, where the caller has no wish of its own. */
export function pollDelays(engine: Engine): RetryStrategy {
  return engine.watch ? WATCHING : POLLING;
}

/**
 * What the engine announces of one resource, from the moment on at which this is made. A notice may
 * overtake the answer to a look that was carried out before it, so it is remembered.
 */
export class ChangeSubscription {
  /** Whether one was announced that the last look may have missed. */
  seen = false;
  onChange: () => void = ignore;
  readonly #stop: (() => void) | undefined;

  constructor(engine: Engine, resource: string) {
    this.#stop = engine.watch?.onChange((name) => {
      if (name !== resource) return;
      this.seen = true;
      this.onChange();
    });
  }

  end(): void {
    this.#stop?.();
  }
}

function ignore(): void {}
