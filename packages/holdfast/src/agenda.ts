/** Something that is due at an instant, in one agenda at a time; its place there is the agenda's. */
export interface Entry {
  place: number;
}

/** What an entry's place is while it is in no agenda. */
export const NOWHERE = -1;

// The place of the first of those that are new; the next ones have lower numbers.
const NEW = -2;

/**
 * Things with an instant each, the earliest at hand: a binary heap of instants. What moves in it are
 * numbers, so that ten thousand leases are sorted without touching any of them: a thing keeps its
 * place, and the agenda knows where in the heap that place is.
 *
 * Most leases are over before anybody asks who is due. So what is new is put down beside the heap, in
 * no order, and sorted in only then: a million that are held cost those that come and go nothing.
 */
export class Agenda<T extends Entry> {
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

  /** The earliest instant; Infinity where there is none. */
  get earliest(): number {
    this.#sortIn();
    return this.#dueAt.length > 0 ? this.#dueAt[0]! : Infinity;
  }

  /** The one that is due first. */
  get first(): T | undefined {
    this.#sortIn();
    return this.#places.length > 0 ? this.#items[this.#places[0]!] : undefined;
  }

  /** All of them, in no order. */
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
    // It is asked for every entry that is due, and to set a length is slow even where it is that already.
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

  /** Puts it where it belongs, up or down from an index that is free, or its own. */
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
