/** An event in the future that can be cancelled. */
export interface ScheduledEvent {
  cancel(): void;
}

class Planned implements ScheduledEvent {
  readonly at: number;
  readonly order: number;
  act: (() => void) | null;

  constructor(at: number, order: number, act: () => void) {
    this.at = at;
    this.order = order;
    this.act = act;
  }

  cancel(): void {
    this.act = null;
  }
}

/** Virtual time in ms. The next event runs at once, and the clock jumps to its time. */
export class World {
  now = 0;
  /** The most events. A schedule that does not end is a defect and must not hang the simulator. */
  #budget: number;
  readonly #heap: Planned[] = [];
  #order = 0;

  constructor(budget: number) {
    this.#budget = budget;
  }

  after(delayMs: number, act: () => void): ScheduledEvent {
    const planned = new Planned(this.now + Math.max(0, delayMs), this.#order++, act);
    this.#push(planned);
    return planned;
  }

  /** Runs all events up to this time. Returns false if the budget is spent. */
  runUntil(end: number): boolean {
    for (let next = this.#heap[0]; next !== undefined && next.at <= end; next = this.#heap[0]) {
      this.#pop();
      if (next.act === null) continue;
      if (this.#budget-- <= 0) return false;
      this.now = next.at;
      next.act();
    }
    this.now = Math.max(this.now, end);
    return true;
  }

  #push(planned: Planned): void {
    const heap = this.#heap;
    let i = heap.length;
    heap.push(planned);
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (!isBefore(planned, heap[parent]!)) break;
      heap[i] = heap[parent]!;
      i = parent;
    }
    heap[i] = planned;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop()!;
    const size = heap.length;
    if (size === 0) return;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= size) break;
      if (child + 1 < size && isBefore(heap[child + 1]!, heap[child]!)) child++;
      if (!isBefore(heap[child]!, last)) break;
      heap[i] = heap[child]!;
      i = child;
    }
    heap[i] = last;
  }
}

function isBefore(a: Planned, b: Planned): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}
