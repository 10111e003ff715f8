// Between two moves at least so many entries are made.
const LEAST_MADE = 1_024;

/**
 * A map whose entries come and go all the time. V8 gives a map that is full a new table, also where
 * most of it was deleted, and leaves the former one linked to it. As soon as one such table is old, the
 * collector takes every later one for alive, with all that was in it when it was left: a third of the
 * time went into copying what nobody needed. A new map has no past, so the entries move to one every
 * so often; rarely enough that moving costs nothing.
 */
export class Registry<K, V> {
  #map = new Map<K, V>();
  #made = 0;

  get size(): number {
    return this.#map.size;
  }

  get(key: K): V | undefined {
    return this.#map.get(key);
  }

  set(key: K, value: V): void {
    if (++this.#made > LEAST_MADE && this.#made > 4 * this.#map.size) {
      this.#map = new Map(this.#map);
      this.#made = 0;
    }
    this.#map.set(key, value);
  }

  delete(key: K): boolean {
    return this.#map.delete(key);
  }

  /** All of them, as they are now. */
  values(): V[] {
    return [...this.#map.values()];
  }
}
