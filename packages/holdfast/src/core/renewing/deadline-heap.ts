/**
 * Something that is due at an instant. It is in one heap at a time, and only the heap writes its
 * place.
 */
export interface HeapEntry {
  place: number;
}

/** The place of an entry that is in no heap. */
export const NOWHERE = -1;

// The place of the first new entry; later new entries have lower numbers.
const NEW = -2;

/**
 * A binary heap of instants with the earliest first. The heap moves numbers, so ten thousand
 * entries are sorted without touching any of them: an entry keeps its place, and the heap knows the
 * index of that place.
 *
 * Most leases end before anybody asks which one is due. So a new entry is put beside the heap, in
 * no order, and is sorted in only when the earliest is asked for: entries that come and go cost the
 * same beside a million that stay.
 */
export class DeadlineHeap<T extends HeapEntry> {
  readonly #newItems: T[] = [];
  readonly #newDueAt: number[] = [];
  /** By place. */
  readonly #items: (T | undefined)[] = [];
  readonly #indices: number[] = [];
  readonly #free: number[] = [];
  /** By index in the heap. */
  readonly #places: number[] = [];
  readonly #dueAt: number[] = [];

  get size(): number {
    return this.#places.length + this.#newItems.length;
  }

  /** The earliest instant; Infinity without entries. */
  get earliest(): number {
    this.#sortIn();
    return this.#dueAt.length > 0 ? this.#dueAt[0]! : Infinity;
  }

  /** The entry that is due first. */
  get first(): T | undefined {
    this.#sortIn();
    return this.#places.length > 0 ? this.#items[this.#places[0]!] : undefined;
  }

  /** All entries, in no order. */
  items(): T[] {
    return this.#places.map((place) => this.#items[place]!).concat(this.#newItems);
  }

  set(item: T, at: number): void {
    const { place } = item;
    if (place >= 0) this.#settle(place, at, this.#indices[place]!);
    else if (place <= NEW) this.#newDueAt[NEW - place] = at;
    else {
      item.place = NEW - this.#newItems.length;
      this.#newItems.push(item);
      this.#newDueAt.push(at);
    }
  }

  delete(item: T): void {
    const { place } = item;
    if (place === NOWHERE) return;
    item.place = NOWHERE;
    if (place >= 0) this.#leaveHeap(place);
    else this.#leaveNew(NEW - place);
  }

  #leaveNew(index: number): void {
    const last = this.#newItems.pop()!;
    const at = this.#newDueAt.pop()!;
    if (index === this.#newItems.length) return;
    last.place = NEW - index;
    this.#newItems[index] = last;
    this.#newDueAt[index] = at;
  }

  #leaveHeap(place: number): void {
    this.#items[place] = undefined;
    this.#free.push(place);
    const last = this.#places.pop()!;
    const at = this.#dueAt.pop()!;
    if (last !== place) this.#settle(last, at, this.#indices[place]!);
  }

  #sortIn(): void {
    // This runs for every due entry, and setting a length is slow even if nothing changes.
    if (this.#newItems.length === 0) return;
    for (let i = 0; i < this.#newItems.length; i++) {
      const item = this.#newItems[i]!;
      const at = this.#newDueAt[i]!;
      const place = this.#free.pop() ?? this.#items.length;
      item.place = place;
      this.#items[place] = item;
      const index = this.#places.push(place) - 1;
      this.#dueAt.push(at);
      this.#settle(place, at, index);
    }
    this.#newItems.length = 0;
    this.#newDueAt.length = 0;
  }

  /** Moves a place up or down to where it belongs, starting at a free index or its own. */
  #settle(place: number, at: number, index: number): void {
    const dueAt = this.#dueAt;
    while (index > 0) {
      const above = (index - 1) >> 1;
      if (dueAt[above]! <= at) break;
      this.#put(this.#places[above]!, dueAt[above]!, index);
      index = above;
    }
    for (let below = 2 * index + 1; below < dueAt.length; below = 2 * index + 1) {
      if (below + 1 < dueAt.length && dueAt[below + 1]! < dueAt[below]!) below++;
      if (dueAt[below]! >= at) break;
      this.#put(this.#places[below]!, dueAt[below]!, index);
      index = below;
    }
    this.#put(place, at, index);
  }

  #put(place: number, at: number, index: number): void {
    this.#places[index] = place;
    this.#dueAt[index] = at;
    this.#indices[place] = index;
  }
}
