import type { LocalWaiter } from "./local-waiter.js";

/**
 * Local waiters in the order of arrival. A linked list, because any waiter may leave at any time.
 * One signal may abort a hundred thousand waiters; closing the gaps in an array would then block
 * the process for longer than a lease can wait.
 */
export class LocalQueue<W extends LocalWaiter = LocalWaiter> implements Iterable<W> {
  #first: W | null = null;
  #last: W | null = null;
  #length = 0;

  get first(): W | null {
    return this.#first;
  }

  get length(): number {
    return this.#length;
  }

  join(waiter: W): void {
    waiter.isQueued = true;
    waiter.before = this.#last;
    if (this.#last === null) this.#first = waiter;
    else this.#last.after = waiter;
    this.#last = waiter;
    this.#length++;
  }

  /** Removes the waiter. Returns whether it was in the queue. */
  leave(waiter: W): boolean {
    if (!waiter.isQueued) return false;
    const [before, after] = [waiter.before as W | null, waiter.after as W | null];
    if (before === null) this.#first = after;
    else before.after = after;
    if (after === null) this.#last = before;
    else after.before = before;
    waiter.isQueued = false;
    // An old waiter must not keep all later ones alive.
    waiter.before = null;
    waiter.after = null;
    this.#length--;
    return true;
  }

  /**
   * Starts the timer of every waiter. Walks from the newest waiter to the first one that has a
   * timer: all waiters before it have one too.
   */
  startWaitTimers(): void {
    for (let one = this.#last; one !== null && !one.hasWaitTimer; one = one.before as W | null) {
      one.startWaitTimer();
    }
  }

  /** A copy, because the loop body may remove waiters. */
  [Symbol.iterator](): Iterator<W> {
    const all: W[] = [];
    for (let one = this.#first; one !== null; one = one.after as W | null) all.push(one);
    return all[Symbol.iterator]();
  }
}
