// Entries that outlive at least so many others are there to stay.
const GENERATION = 1_024;

/**
 * A map whose entries come and go all the time, while others may stay for long. V8's own is slow there
 * for two reasons. What is deleted stays in its bucket until the whole table is made anew: where a
 * million entries stay, a name that comes and goes is soon looked for behind thousands of its own
 * past. And the former table stays linked to the new one, so that the collector, once one of them is
 * old, takes every later one for alive, with all that was in it.
 *
 * So entries begin in a small map. It is exchanged for a new one, which has no past, after a
 * generation of entries; those that are still there a generation later are put with those that stay.
 */
export class Registry<K, V> {
  #young = new Map<K, V>();
  #middle = new Map<K, V>();
  readonly #old = new Map<K, V>();
  #made = 0;

  get size(): number {
    return this.#young.size + this.#middle.size + this.#old.size;
  }

  get(key: K): V | undefined {
    return this.#young.get(key) ?? this.#middle.get(key) ?? this.#old.get(key);
  }

  /** The key must be new: what it had would not be found. */
  add(key: K, value: V): void {
    if (++this.#made > GENERATION) this.#grow();
    this.#young.set(key, value);
  }

  delete(key: K): boolean {
    return this.#young.delete(key) || this.#middle.delete(key) || this.#old.delete(key);
  }

  /** All of them, as they are now, the oldest first. */
  values(): V[] {
    return [...this.#old.values(), ...this.#middle.values(), ...this.#young.values()];
  }

  #grow(): void {
    for (const [key, value] of this.#middle) this.#old.set(key, value);
    this.#middle = this.#young;
    this.#young = new Map();
    this.#made = 0;
  }
}
