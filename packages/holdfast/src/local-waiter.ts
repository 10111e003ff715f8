import type { Clock, Timer } from "./clock.js";
import type { HeldLease } from "./lease.js";
import { onAbort } from "./on-abort.js";
import type { Terms } from "./options.js";
import { RetryWalk } from "./retry.js";

/** Where it stands, and who is told what becomes of it. */
export interface LocalLine {
  /** Its patience is spent. */
  onLate(waiter: LocalWaiter): void;
  onAbort(waiter: LocalWaiter, reason: unknown): void;
}

/** One caller in a cohort's line, with its own patience, signal and retries. */
export class LocalWaiter {
  readonly terms: Terms;
  readonly startedAt: number;
  readonly resolve: (lease: HeldLease) => void;
  readonly reject: (error: unknown) => void;
  readonly #clock: Clock;
  readonly #line: LocalLine;
  readonly #unfollow: (() => void) | undefined;
  #retry: RetryWalk | null = null;
  #patience: Timer | null = null;

  constructor(
    terms: Terms,
    startedAt: number,
    clock: Clock,
    line: LocalLine,
    resolve: (lease: HeldLease) => void,
    reject: (error: unknown) => void,
  ) {
    this.terms = terms;
    this.startedAt = startedAt;
    this.resolve = resolve;
    this.reject = reject;
    this.#clock = clock;
    this.#line = line;
    const { signal } = terms;
    this.#unfollow = signal && onAbort(signal, () => line.onAbort(this, signal.reason));
  }

  get retry(): RetryWalk {
    this.#retry ??= new RetryWalk(this.terms.retry);
    return this.#retry;
  }

  isLate(now: number): boolean {
    return now >= this.startedAt + this.terms.waitMs;
  }

  /** Calls onLate when patience is spent. Before that, nobody does. */
  watchPatience(): void {
    if (this.#patience !== null) return;
    // With endless patience the timer is only there to keep the process alive while it waits.
    const leftMs =
      this.terms.waitMs === Infinity
        ? Number.MAX_SAFE_INTEGER
        : this.startedAt + this.terms.waitMs - this.#clock.now();
    this.#patience = this.#clock.timer(leftMs, () => this.#line.onLate(this), true);
  }

  stopPatience(): void {
    this.#patience?.cancel();
    this.#patience = null;
  }

  stop(): void {
    this.stopPatience();
    this.#unfollow?.();
    this.#retry?.end();
  }
}
