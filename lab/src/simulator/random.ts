/** A seeded random generator: the same seed gives the same numbers. */
export class Random {
  #state: number;

  constructor(seed: number) {
    // Mixes the seed, so that neighbouring seeds start differently.
    this.#state = Math.imul(seed ^ (seed >>> 16), 0x45d9f3b) | 0;
    this.next();
    this.next();
  }

  /** From 0 up to 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  between(least: number, most: number): number {
    return least + this.next() * (most - least);
  }

  /** A whole number below the bound. */
  below(bound: number): number {
    return Math.floor(this.next() * bound);
  }

  pick<T>(all: readonly T[]): T {
    return all[this.below(all.length)]!;
  }
}
