/** Something that is due at an instant, in one agenda at a time; its place there is the agenda's. */
export interface Entry {
  dueAt: number;
  place: number;
}

/** What an entry's place is while it is in no agenda. */
export const NOWHERE = -1;

/** Things with an instant each, the earliest at hand: a binary heap in which each knows its place. */
export class Agenda<T extends Entry> {
  readonly #heap: T[] = [];

  get size(): number {
    return this.#heap.length;
  }

  /** The earliest instant; Infinity where there is none. */
  get earliest(): number {
    return this.#heap[0]?.dueAt ?? Infinity;
  }

  /** The one that is due first. */
  get first(): T | undefined {
    return this.#heap[0];
  }

  /** All of them, in no order. */
  items(): T[] {
    return [...this.#heap];
  }

  set(item: T, at: number): void {
    if (item.place === NOWHERE) item.place = this.#heap.push(item) - 1;
    item.dueAt = at;
    this.#sink(this.#rise(item.place));
  }

  delete(item: T): void {
    const { place } = item;
    if (place === NOWHERE) return;
    item.place = NOWHERE;
    const last = this.#heap.pop()!;
    if (last === item) return;
    this.#put(last, place);
    this.#sink(this.#rise(place));
  }

  #rise(place: number): number {
    const item = this.#heap[place]!;
    while (place > 0) {
      const above = (place - 1) >> 1;
      const parent = this.#heap[above]!;
      if (parent.dueAt <= item.dueAt) break;
      this.#put(parent, place);
      place = above;
    }
    this.#put(item, place);
    return place;
  }

  #sink(place: number): void {
    const item = this.#heap[place]!;
    for (;;) {
      let below = 2 * place + 1;
      if (below >= this.#heap.length) break;
      const right = this.#heap[below + 1];
      if (right !== undefined && right.dueAt < this.#heap[below]!.dueAt) below++;
      const child = this.#heap[below]!;
      if (child.dueAt >= item.dueAt) break;
      this.#put(child, place);
      place = below;
    }
    this.#put(item, place);
  }

  #put(item: T, place: number): void {
    this.#heap[place] = item;
    item.place = place;
  }
}
