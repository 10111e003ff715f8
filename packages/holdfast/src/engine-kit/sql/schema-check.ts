import { systemClock } from "../../core/runtime/clock.js";
import { EngineError } from "../../errors.js";

/**
 * Checks the schema before the first call. Callers share one check; a failed one is not remembered.
 */
export class SchemaCheck {
  readonly #check: (limitMs: number) => Promise<void>;
  #pending: Promise<void> | null = null;

  /** check asks the server, and takes limitMs at most. */
  constructor(check: (limitMs: number) => Promise<void>) {
    this.#check = check;
  }

  async passed(limitMs: number): Promise<void> {
    const deadline = systemClock.now() + limitMs;
    for (;;) {
      const joined = this.#pending;
      try {
        return await (joined ?? this.#begin(deadline - systemClock.now()));
      } catch (error) {
        // The caller that started the shared check may have had less time than this one has.
        const isWorthAnother = error instanceof EngineError && error.retryable;
        if (joined === null || !isWorthAnother || systemClock.now() >= deadline) throw error;
      }
    }
  }

  #begin(limitMs: number): Promise<void> {
    const begun = this.#check(limitMs).catch((error: unknown) => {
      this.#pending = null;
      throw error;
    });
    this.#pending = begun;
    return begun;
  }
}
