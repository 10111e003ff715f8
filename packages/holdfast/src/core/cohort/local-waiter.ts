import { EngineError } from "../../errors.js";
import { channels, emit } from "../../events.js";
import type { Terms } from "../../options.js";
import { onAbort } from "../acquiring/on-abort.js";
import { FINAL_ANSWER_MS } from "../acquiring/pending-claim.js";
import { RetryWalk } from "../acquiring/retry.js";
import type { HeldLease } from "../holding/lease.js";
import type { Clock, Timer } from "../runtime/clock.js";

/** Decides what happens to a local waiter that times out or is aborted. */
export interface LocalHost {
  /** The waiter's waitMs is over. */
  onTimeout(waiter: LocalWaiter): void;
  onAbort(waiter: LocalWaiter, reason: unknown): void;
}

/** One caller in a local queue, with its own waitMs, signal and retries. */
export class LocalWaiter {
  readonly terms: Terms;
  readonly startedAt: number;
  readonly reject: (error: unknown) => void;
  /** The neighbours in the queue, and whether the waiter is in it. Only the queue writes these. */
  before: LocalWaiter | null = null;
  after: LocalWaiter | null = null;
  isQueued = false;
  readonly #clock: Clock;
  readonly #host: LocalHost;
  readonly #resolve: (lease: HeldLease) => void;
  readonly #stopListening: (() => void) | undefined;
  #retry: RetryWalk | null = null;
  #waitTimer: Timer | null = null;

  constructor(
    terms: Terms,
    startedAt: number,
    clock: Clock,
    host: LocalHost,
    resolve: (lease: HeldLease) => void,
    reject: (error: unknown) => void,
  ) {
    this.terms = terms;
    this.startedAt = startedAt;
    this.#resolve = resolve;
    this.reject = reject;
    this.#clock = clock;
    this.#host = host;
    const { signal } = terms;
    this.#stopListening = signal && onAbort(signal, () => host.onAbort(this, signal.reason));
  }

  /** Gives the caller its lease. */
  serve(lease: HeldLease): void {
    if (channels.acquired.hasSubscribers) {
      const waitedMs = lease.acquiredAt - this.startedAt;
      emit("acquired", () => ({ ...lease.subject(), waitedMs }));
    }
    this.#resolve(lease);
  }

  /**
   * The pause after a claim that failed, by the caller's own strategy. Throws the error for the
   * caller if the waiter does not go on.
   */
  delayAfter(error: unknown, now: number): number {
    const goesOn = error instanceof EngineError && error.retryable && !this.hasTimedOut(now);
    if (!goesOn) throw error;
    this.#retry ??= new RetryWalk(this.terms.retry);
    const delayMs = this.#retry.next(error);
    if (delayMs === null) throw error;
    return delayMs;
  }

  hasTimedOut(now: number): boolean {
    return now >= this.startedAt + this.terms.waitMs;
  }

  /** How long an answer that is on its way is still worth waiting for. */
  finalAnswerMs(now: number): number {
    return this.startedAt + this.terms.waitMs + FINAL_ANSWER_MS - now;
  }

  /** Whether the timer for waitMs was started; it may have fired already. */
  get hasWaitTimer(): boolean {
    return this.#waitTimer !== null;
  }

  /** Starts the timer that calls onTimeout when waitMs is over. */
  startWaitTimer(): void {
    if (this.#waitTimer !== null) return;
    // With waitMs Infinity the timer only keeps the process alive during the wait.
    const leftMs =
      this.terms.waitMs === Infinity
        ? Number.MAX_SAFE_INTEGER
        : this.startedAt + this.terms.waitMs - this.#clock.now();
    this.#waitTimer = this.#clock.timer(leftMs, () => this.#host.onTimeout(this), true);
  }

  /** Calls onTimeout once more, after ms. */
  remind(ms: number): void {
    this.#waitTimer?.cancel();
    this.#waitTimer = this.#clock.timer(ms, () => this.#host.onTimeout(this), true);
  }

  stop(): void {
    this.#waitTimer?.cancel();
    this.#waitTimer = null;
    this.#stopListening?.();
    this.#retry?.end();
  }
}
