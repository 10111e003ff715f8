import type { LocalWaiter } from "./local-waiter.js";

/**
 * Local waiters in the order in which they came. A linked list, because anybody may leave at any
 * time: to find and close a gap in an array of a hundred thousand takes longer than a lease can wait
 * when all of them are aborted by one signal.
 */
export class LocalQueue<W extends LocalWaiter = LocalWaiter> implements Iterable<W> {
  #first: W | null = null;
  #last: W | null = null;
  #length = 0;

  get first(): W | null {
    return this.#first;
  }

  get last(): W | null {
    return this.#last;
  }

  get length(): number {
    return this.#length;
  }

  join(waiter: W): void {
    waiter.isInLine = true;
    waiter.before = this.#last;
    if (this.#last === null) this.#first = waiter;
    else this.#last.after = waiter;
    this.#last = waiter;
    this.#length++;
  }

  /** Whether it was in the queue. */
  leave(waiter: W): boolean {
    if (!waiter.isInLine) return false;
    const [before, after] = [waiter.before as W | null, waiter.after as W | null];
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
  [Symbol.iterator](): Iterator<W> {
    const all: W[] = [];
    for (let one = this.#first; one !== null; one = one.after as W | null) all.push(one);
    return all[Symbol.iterator]();
  }
}
