import type { LocalWaiter } from "./local-waiter.js";

/**
 * Local waiters in the order in which they came. A linked list, because anybody may leave at any
 * time: to find and close a gap in an array of a hundred thousand takes longer than a lease can wait
 * when all of them are aborted by one signal.
 */
export class LocalLine implements Iterable<LocalWaiter> {
  #first: LocalWaiter | null = null;
  #last: LocalWaiter | null = null;
  #length = 0;

  get first(): LocalWaiter | null {
    return this.#first;
  }

  get last(): LocalWaiter | null {
    return this.#last;
  }

  get length(): number {
    return this.#length;
  }

  join(waiter: LocalWaiter): void {
    waiter.isInLine = true;
    waiter.before = this.#last;
    if (this.#last === null) this.#first = waiter;
    else this.#last.after = waiter;
    this.#last = waiter;
    this.#length++;
  }

  /** Whether it was in line. */
  leave(waiter: LocalWaiter): boolean {
    if (!waiter.isInLine) return false;
    const { before, after } = waiter;
    if (before === null) this.#first = after;
    else before.after = after;
    if (after === null) this.#last = before;
    else after.before = before;
    waiter.isInLine = false;
    // One that has grown old must not keep all that came after it alive.
    waiter.before = null;
    waiter.after = null;
    this.#length--;
    return true;
  }

  /** All of them as they are now: who goes through them may send them away. */
  [Symbol.iterator](): Iterator<LocalWaiter> {
    const all: LocalWaiter[] = [];
    for (let waiter = this.#first; waiter !== null; waiter = waiter.after) all.push(waiter);
    return all[Symbol.iterator]();
  }
}
