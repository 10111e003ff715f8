import type { Terms } from "../../options.js";
import { onAbort } from "../acquiring/on-abort.js";
import { LAST_WORD_MS } from "../acquiring/pending-claim.js";
import { RetryWalk } from "../acquiring/retry.js";
import type { HeldLease } from "../holding/lease.js";
import type { Clock, Timer } from "../runtime/clock.js";

/** Who is told what becomes of a local waiter. */
export interface LocalHost {
  /** Its patience is spent. */
  onLate(waiter: LocalWaiter): void;
  onAbort(waiter: LocalWaiter, reason: unknown): void;
}

/** One caller in a cohort's queue, with its own patience, signal and retries. */
export class LocalWaiter {
  readonly terms: Terms;
  readonly startedAt: number;
  readonly resolve: (lease: HeldLease) => void;
  readonly reject: (error: unknown) => void;
  /** Its neighbours in the queue, and whether it is in the queue; for the queue alone to change. */
  before: LocalWaiter | null = null;
  after: LocalWaiter | null = null;
  isInLine = false;
  readonly #clock: Clock;
  readonly #host: LocalHost;
  readonly #unfollow: (() => void) | undefined;
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
    this.resolve = resolve;
    this.reject = reject;
    this.#clock = clock;
    this.#host = host;
    const { signal } = terms;
    this.#unfollow = signal && onAbort(signal, () => host.onAbort(this, signal.reason));
  }

  get retry(): RetryWalk {
    this.#retry ??= new RetryWalk(this.terms.retry);
    return this.#retry;
  }

  hasTimedOut(now: number): boolean {
    return now >= this.startedAt + this.terms.waitMs;
  }

  /** How long an answer that is on its way is still worth waiting for. */
  lastWordMs(now: number): number {
    return this.startedAt + this.terms.waitMs + LAST_WORD_MS - now;
  }

  /** Whether onLate is called, or was called, when patience is spent. */
  get isWatched(): boolean {
    return this.#waitTimer !== null;
  }

  /** Calls onLate when patience is spent. Before that, nobody does. */
  watchPatience(): void {
    if (this.#waitTimer !== null) return;
    // With endless patience the timer is only there to keep the process alive while it waits.
    const leftMs =
      this.terms.waitMs === Infinity
        ? Number.MAX_SAFE_INTEGER
        : this.startedAt + this.terms.waitMs - this.#clock.now();
    this.#waitTimer = this.#clock.timer(leftMs, () => this.#host.onLate(this), true);
  }

  /** Calls onLate once more, after so long. */
  remind(ms: number): void {
    this.#waitTimer?.cancel();
    this.#waitTimer = this.#clock.timer(ms, () => this.#host.onLate(this), true);
  }

  stop(): void {
    this.#waitTimer?.cancel();
    this.#waitTimer = null;
    this.#unfollow?.();
    this.#retry?.end();
  }
}
