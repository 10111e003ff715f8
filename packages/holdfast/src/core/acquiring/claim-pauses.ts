import type { Caller } from "../calling/call.js";
import type { Timer } from "../runtime/clock.js";
import { ChangeSubscription, pollDelays } from "./polling.js";
import { type RetryStrategy, RetryWalk } from "./retry.js";

const LEAST_LOOK_MS = 5;

/** How a claim pauses between its requests. */
export interface PauseTerms {
  readonly resource: string;
  /** Delays after errors; where the engine keeps no queue, also between polls. */
  readonly retry: RetryStrategy | undefined;
  /** Delays between polls where the engine keeps no queue. Default: pollDelays(). */
  readonly looks?: RetryStrategy | undefined;
}

/**
 * Decides when a claim asks again: a while after a failure. Where the engine keeps no queue, also a
 * while after a busy answer, or when the engine reports a change.
 */
export class ClaimPauses {
  readonly #caller: Caller;
  readonly #terms: PauseTerms;
  readonly #askAgain: () => void;
  #errors: RetryWalk | null = null;
  #looks: RetryWalk | null = null;
  #changes: ChangeSubscription | null = null;
  #resting: Timer | null = null;
  #isOver = false;

  constructor(caller: Caller, terms: PauseTerms, askAgain: () => void) {
    this.#caller = caller;
    this.#terms = terms;
    this.#askAgain = askAgain;
  }

  /** Called before a poll. The poll itself sees every change that was reported before it. */
  looking(): void {
    this.#heardChanges().seen = false;
  }

  /** Schedules the next poll. False when the strategy has ended, or has ended the claim. */
  afterBusy(retryAfterMs: number, leftMs: number): boolean {
    const { retry, looks } = this.#terms;
    this.#looks ??=
      retry === undefined
        ? new RetryWalk(looks ?? pollDelays(this.#caller.engine))
        : this.#errorWalk();
    const delayMs = this.#nextDelay(this.#looks, undefined);
    if (delayMs === null) return false;
    const changes = this.#heardChanges();
    const soonMs = Math.min(delayMs, Math.max(retryAfterMs, LEAST_LOOK_MS));
    const again = this.#rest(Math.min(soonMs, leftMs));
    changes.onChange = again;
    if (changes.seen) again();
    return true;
  }

  /** Schedules the next try. False when the strategy has ended, or has ended the claim. */
  afterFailure(error: unknown, leftMs: number): boolean {
    const delayMs = this.#nextDelay(this.#errorWalk(), error);
    if (delayMs === null) return false;
    this.#rest(Math.min(delayMs, leftMs));
    return true;
  }

  end(): void {
    this.#isOver = true;
    this.#stopResting();
    this.#errors?.end();
    this.#looks?.end();
    this.#changes?.end();
  }

  #heardChanges(): ChangeSubscription {
    this.#changes ??= new ChangeSubscription(this.#caller.engine, this.#terms.resource);
    return this.#changes;
  }

  #errorWalk(): RetryWalk {
    this.#errors ??= new RetryWalk(this.#terms.retry);
    return this.#errors;
  }

  /**
   * A retry strategy is the user's code. If it ends the claim, its result no longer
   * counts, and neither does its error.
   */
  #nextDelay(walk: RetryWalk, error: unknown): number | null {
    try {
      const delayMs = walk.next(error);
      return this.#isOver ? null : delayMs;
    } catch (thrown) {
      if (this.#isOver) return null;
      throw thrown;
    } finally {
      // The strategy may have made its iterator after end().
      if (this.#isOver) walk.end();
    }
  }

  /** Asks again after delayMs, or as soon as the returned function is called. */
  #rest(delayMs: number): () => void {
    const again = () => {
      if (this.#resting !== timer) return;
      this.#stopResting();
      // Not inside the engine's callback: the engine may not have finished reporting the change.
      queueMicrotask(this.#askAgain);
    };
    const timer = this.#caller.clock.timer(delayMs, again, true);
    this.#resting = timer;
    return again;
  }

  #stopResting(): void {
    this.#resting?.cancel();
    this.#resting = null;
  }
}
