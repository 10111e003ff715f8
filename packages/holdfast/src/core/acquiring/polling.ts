import type { Engine } from "../../engine.js";
import { exponential, type RetryStrategy } from "./retry.js";

/** For a backend that neither keeps a queue nor reports changes. */
const POLLING: RetryStrategy = exponential({ minMs: 20, maxMs: 1_000 });
/** For a backend that reports changes: polling only covers a notification that was lost. */
const WATCHING: RetryStrategy = exponential({ minMs: 1_000, maxMs: 1_000 });

/** Delays between polls while a resource is busy, unless the caller gives its own. */
export function pollDelays(engine: Engine): RetryStrategy {
  return engine.watch ? WATCHING : POLLING;
}

/**
 * Collects the changes that the engine reports for one resource, from its construction on. A
 * notification may overtake the answer to a poll that the backend carried out before the change, so
 * it is remembered.
 */
export class ChangeSubscription {
  /** Whether a change was reported that the last poll may have missed. */
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
