import { systemClock } from "../../core/runtime/clock.js";
import { EngineError } from "../../errors.js";

/** Looks at the schema before the first call. Callers share one look; a failed one is not remembered. */
export class SchemaCheck {
  readonly #look: (limitMs: number) => Promise<void>;
  #shared: Promise<void> | null = null;

  /** look: asks the server, within limitMs. */
  constructor(look: (limitMs: number) => Promise<void>) {
    this.#look = look;
  }

  async passed(limitMs: number): Promise<void> {
    const deadline = systemClock.now() + limitMs;
    for (;;) {
      const joined = this.#shared;
      try {
        return await (joined ?? this.#begin(deadline - systemClock.now()));
      } catch (error) {
        // The caller who began that look may have had less time than this one has.
        const isWorthAnother = error instanceof EngineError && error.retryable;
        if (joined === null || !isWorthAnother || systemClock.now() >= deadline) throw error;
      }
    }
  }

  #begin(limitMs: number): Promise<void> {
    const begun = this.#look(limitMs).catch((error: unknown) => {
      this.#shared = null;
      throw error;
    });
    this.#shared = begun;
    return begun;
  }
}
