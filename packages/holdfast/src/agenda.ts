interface Entry<T> {
  readonly item: T;
  at: number;
  place: number;
}

/** Things with an instant each, the earliest at hand: a binary heap that knows where everybody is. */
export class Agenda<T> {
  readonly #heap: Entry<T>[] = [];
  readonly #entries = new Map<T, Entry<T>>();

  /** The earliest instant; Infinity where there is none. */
  get earliest(): number {
    return this.#heap[0]?.at ?? Infinity;
  }

  /** The one that is due first. */
  get first(): T | undefined {
    return this.#heap[0]?.item;
  }

  set(item: T, at: number): void {
    let entry = this.#entries.get(item);
    if (entry === undefined) {
      entry = { item, at, place: this.#heap.length };
      this.#entries.set(item, entry);
      this.#heap.push(entry);
    }
    entry.at = at;
    this.#sink(this.#rise(entry.place));
  }

  delete(item: T): void {
    const entry = this.#entries.get(item);
    if (entry === undefined) return;
    this.#entries.delete(item);
    const last = this.#heap.pop()!;
    if (last === entry) return;
    this.#put(last, entry.place);
    this.#sink(this.#rise(entry.place));
  }

  #rise(place: number): number {
    const entry = this.#heap[place]!;
    while (place > 0) {
      const above = (place - 1) >> 1;
      const parent = this.#heap[above]!;
      if (parent.at <= entry.at) break;
      this.#put(parent, place);
      place = above;
    }
    this.#put(entry, place);
    return place;
  }

  #sink(place: number): void {
    const entry = this.#heap[place]!;
    for (;;) {
      let below = 2 * place + 1;
      if (below >= this.#heap.length) break;
      const right = this.#heap[below + 1];
      if (right !== undefined && right.at < this.#heap[below]!.at) below++;
      const child = this.#heap[below]!;
      if (child.at >= entry.at) break;
      this.#put(child, place);
      place = below;
    }
    this.#put(entry, place);
  }

  #put(entry: Entry<T>, place: number): void {
    this.#heap[place] = entry;
    entry.place = place;
  }
}
