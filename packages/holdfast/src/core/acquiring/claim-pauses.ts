import type { Caller } from "../calling/call.js";
import type { Timer } from "../runtime/clock.js";
import { ChangeSubscription, pollDelays } from "./polling.js";
import { type RetryStrategy, RetryWalk } from "./retry.js";

const LEAST_LOOK_MS = 5;

/** What a claim asks for about its pauses. */
export interface PauseTerms {
  readonly resource: string;
  /** What to do about errors; where the engine keeps no queue, also how often to look again. */
  readonly retry: RetryStrategy | undefined;
  /** How often to look again where the engine keeps no queue; else the core's own pace. */
  readonly looks?: RetryStrategy | undefined;
}

/**
 * When a claim asks again: some time after a failure; and where the engine keeps no queue, some time
 * after it was busy, or when the engine says that something changed.
 */
export class ClaimPauses {
  readonly #caller: Caller;
  readonly #terms: PauseTerms;
  readonly #askAgain: () => void;
  #errors: RetryWalk | null = null;
  #looks: RetryWalk | null = null;
  #changes: ChangeSubscription | null = null;
  #resting: Timer | null = null;

  constructor(caller: Caller, terms: PauseTerms, askAgain: () => void) {
    this.#caller = caller;
    this.#terms = terms;
    this.#askAgain = askAgain;
  }

  /** Called before a look. What was announced until now, this look will see for itself. */
  looking(): void {
    this.#heardChanges().seen = false;
  }

  /** Whether there is to be another look; then it follows. */
  afterBusy(retryAfterMs: number, leftMs: number): boolean {
    const { retry, looks } = this.#terms;
    this.#looks ??=
      retry === undefined
        ? new RetryWalk(looks ?? pollDelays(this.#caller.engine))
        : this.#errorWalk();
    const delayMs = this.#looks.next(undefined);
    if (delayMs === null) return false;
    const changes = this.#heardChanges();
    const soonMs = Math.min(delayMs, Math.max(retryAfterMs, LEAST_LOOK_MS));
    const again = this.#rest(Math.min(soonMs, leftMs));
    changes.onChange = again;
    if (changes.seen) again();
    return true;
  }

  /** Whether there is to be another try; then it follows. */
  afterFailure(error: unknown, leftMs: number): boolean {
    const delayMs = this.#errorWalk().next(error);
    if (delayMs === null) return false;
    this.#rest(Math.min(delayMs, leftMs));
    return true;
  }

  end(): void {
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

  /** Asks again after so long, or when what is returned is called. */
  #rest(delayMs: number): () => void {
    const again = () => {
      if (this.#resting !== timer) return;
      this.#stopResting();
      // Not within the engine's own call: who tells of a change may not be done with it.
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
