// An entry that outlives at least this many others is assumed to stay.
const GENERATION = 1_024;
const GONE = Symbol("gone");

/**
 * A map for entries that come and go all the time while others stay for long. A plain Map is slow
 * there for two reasons. V8 leaves a deleted entry in its bucket until the whole table is rebuilt:
 * beside a million entries that stay, a key that comes and goes is soon looked up behind thousands
 * of its own deleted entries. And V8 links the former table to the new one: once one table is in
 * the old generation, the collector keeps every later one alive, with all that was in it.
 *
 * So entries begin in a small map, which a new one replaces after a generation of entries. Entries
 * that are still there a generation later move to the map of those that stay. When many stay, the
 * small maps also remember for a while that an entry is gone: otherwise every returning key would
 * first be looked up among all that stay, in memory that is not cached.
 */
export class GenerationalMap<K, V> {
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

  /** The key must be new: an older value of it would be hidden. */
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

  /** A copy of all values, the oldest first. */
  values(): V[] {
    const all = [...this.#old.values()];
    for (const map of [this.#middle, this.#young]) {
      for (const value of map.values()) if (value !== GONE) all.push(value);
    }
    return all;
  }

  /** Whether the key was removed; undefined when this map does not know it. */
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
