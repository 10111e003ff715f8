import { onAbort } from "./canceller.js";
import type { Clock, Timer } from "./clock.js";
import type { HeldLease } from "./lease.js";
import type { Terms } from "./options.js";
import { RetryWalk } from "./retry.js";

export interface LocalWaiterEvents {
  readonly resolve: (lease: HeldLease) => void;
  readonly reject: (error: unknown) => void;
  readonly onLate: (waiter: LocalWaiter) => void;
  readonly onAbort: (waiter: LocalWaiter, reason: unknown) => void;
}

/** One caller in a cohort's line, with its own patience, signal and retries. */
export class LocalWaiter {
  /** Patience was spent before the backend said anything; its first word decides. */
  late = false;
  readonly terms: Terms;
  readonly startedAt: number;
  readonly retry: RetryWalk;
  readonly resolve: (lease: HeldLease) => void;
  readonly reject: (error: unknown) => void;
  readonly #timer: Timer;
  readonly #unfollow: (() => void) | undefined;

  constructor(terms: Terms, startedAt: number, clock: Clock, events: LocalWaiterEvents) {
    this.terms = terms;
    this.startedAt = startedAt;
    this.retry = new RetryWalk(terms.retry);
    this.resolve = events.resolve;
    this.reject = events.reject;
    // With endless patience the timer is only there to keep the process alive while it waits.
    const leftMs =
      terms.waitMs === Infinity ? Number.MAX_SAFE_INTEGER : startedAt + terms.waitMs - clock.now();
    const onLate = () => {
      this.late = true;
      events.onLate(this);
    };
    this.#timer = clock.timer(leftMs, onLate, true);
    const { signal } = terms;
    this.#unfollow = signal && onAbort(signal, () => events.onAbort(this, signal.reason));
  }

  stop(): void {
    this.#timer.cancel();
    this.#unfollow?.();
    this.retry.end();
  }
}
