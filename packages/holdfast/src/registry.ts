// Entries that outlive at least so many others are there to stay.
const GENERATION = 1_024;
const GONE = Symbol("gone");

/**
 * A map whose entries come and go all the time, while others may stay for long. V8's own is slow there
 * for two reasons. What is deleted stays in its bucket until the whole table is made anew: where a
 * million entries stay, a name that comes and goes is soon looked for behind thousands of its own
 * past. And the former table stays linked to the new one, so that the collector, once one of them is
 * old, takes every later one for alive, with all that was in it.
 *
 * So entries begin in a small map. It is exchanged for a new one, which has no past, after a
 * generation of entries; those that are still there a generation later are put with those that stay.
 * Where many stay, it is also remembered for a while that an entry has gone: otherwise every name
 * that comes again would be looked for among all of them first, in memory that is not at hand.
 */
export class Registry<K, V> {
  #young = new Map<K, V | typeof GONE>();
  #middle = new Map<K, V | typeof GONE>();
  readonly #old = new Map<K, V>();
  #made = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(key: K): V | undefined {
    const found = this.#young.get(key) ?? this.#middle.get(key) ?? this.#old.get(key);
    return found === GONE ? undefined : found;
  }

  /** The key must be new: what it had would not be found. */
  add(key: K, value: V): void {
    if (++this.#made > GENERATION) this.#grow();
    this.#young.set(key, value);
    this.#size++;
  }

  delete(key: K): boolean {
    const left = this.#leave(this.#young, key) ?? this.#leave(this.#middle, key);
    const deleted = left ?? this.#old.delete(key);
    if (deleted) this.#size--;
    return deleted;
  }

  /** All of them, as they are now, the oldest first. */
  values(): V[] {
    const all = [...this.#old.values()];
    for (const map of [this.#middle, this.#young]) {
      for (const value of map.values()) if (value !== GONE) all.push(value);
    }
    return all;
  }

  /** Whether it left just now; undefined where this map knows nothing of it. */
  #leave(map: Map<K, V | typeof GONE>, key: K): boolean | undefined {
    const value = map.get(key);
    if (value === undefined) return undefined;
    if (value === GONE) return false;
    if (this.#old.size > GENERATION) map.set(key, GONE);
    else map.delete(key);
    return true;
  }

  #grow(): void {
    for (const [key, value] of this.#middle) if (value !== GONE) this.#old.set(key, value);
    this.#middle = this.#young;
    this.#young = new Map();
    this.#made = 0;
  }
}
