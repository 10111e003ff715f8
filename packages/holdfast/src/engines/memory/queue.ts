import type { Claim } from "../../engine.js";
import type { MemoryGrant } from "./resource-records.js";

// A shorter queue is not worth compacting, however many of its slots are empty.
const MIN_SLOTS_TO_COMPACT = 32;

export interface QueuedWaiter {
  readonly claim: Claim;
  /** Tells the waiter's engine about its grant. */
  readonly push: (grant: MemoryGrant, since: number) => void;
  /** The engine that enqueued it. */
  readonly engine?: object;
}

/**
 * Waiters in order of arrival. Joining, leaving and counting the waiters ahead cost O(log n): with
 * thousands of waiters, a linear search at each heartbeat would block the process.
 */
export class Queue {
  /** Null where a waiter has left. */
  #slots: (QueuedWaiter | null)[] = [];
  /** A Fenwick tree: entry i counts the waiters in the i & -i slots that end with slot i - 1. */
  #counts = [0];
  readonly #slotOf = new Map<string, number>();
  #firstSlot = 0;
  #sharedCount = 0;
  #limit: number | null = null;

  get length(): number {
    return this.#slotOf.size;
  }

  get first(): QueuedWaiter | undefined {
    if (this.length === 0) return undefined;
    while (this.#slots[this.#firstSlot] === null) this.#firstSlot++;
    return this.#slots[this.#firstSlot]!;
  }

  /** The one limit of all shared claims in the queue; undefined if it has none. */
  get limit(): number | null | undefined {
    return this.#sharedCount === 0 ? undefined : this.#limit;
  }

  has(grantId: string): boolean {
    return this.#slotOf.has(grantId);
  }

  /** How many waiters are ahead; -1 for a grantId that is not in the queue. */
  position(grantId: string): number {
    const slot = this.#slotOf.get(grantId);
    if (slot === undefined) return -1;
    let ahead = 0;
    for (let i = slot; i > 0; i -= i & -i) ahead += this.#counts[i]!;
    return ahead;
  }

  join(waiter: QueuedWaiter): void {
    const { grantId, mode, limit } = waiter.claim;
    this.#slotOf.set(grantId, this.#slots.length);
    this.#slots.push(waiter);
    const last = this.#slots.length;
    let count = 1;
    for (let i = last - 1; i > last - (last & -last); i -= i & -i) count += this.#counts[i]!;
    this.#counts.push(count);
    if (mode === "exclusive") return;
    this.#sharedCount++;
    this.#limit = limit;
  }

  leave(grantId: string): QueuedWaiter | undefined {
    const slot = this.#slotOf.get(grantId);
    if (slot === undefined) return undefined;
    const waiter = this.#slots[slot]!;
    this.#slotOf.delete(grantId);
    this.#slots[slot] = null;
    for (let i = slot + 1; i < this.#counts.length; i += i & -i) this.#counts[i]!--;
    if (waiter.claim.mode === "shared") this.#sharedCount--;
    if (this.#slots.length > Math.max(MIN_SLOTS_TO_COMPACT, 2 * this.length)) this.#compact();
    return waiter;
  }

  *[Symbol.iterator](): Iterator<QueuedWaiter> {
    for (const waiter of this.#slots) if (waiter !== null) yield waiter;
  }

  #compact(): void {
    const waiters = [...this];
    this.#slots = [];
    this.#counts = [0];
    this.#slotOf.clear();
    this.#firstSlot = 0;
    this.#sharedCount = 0;
    for (const waiter of waiters) this.join(waiter);
  }
}
