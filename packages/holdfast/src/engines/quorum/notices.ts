import type { Clock, Timer } from "../../clock.js";

/** All who wait hear of a release at once; those who come at the same instant split the vote. */
const SPREAD_MS = 3;

/** Gathers what the nodes tell of one release, and passes it on once, after a random moment. */
export class Notices {
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #listeners = new Set<(resource: string) => void>();
  readonly #timers = new Map<string, Timer>();

  constructor(clock: Clock, random: () => number) {
    this.#clock = clock;
    this.#random = random;
  }

  hear(resource: string): void {
    if (this.#listeners.size === 0 || this.#timers.has(resource)) return;
    const tell = () => {
      this.#timers.delete(resource);
      for (const listener of this.#listeners) listener(resource);
    };
    const timer = this.#clock.timer(1 + this.#random() * SPREAD_MS, tell, false);
    this.#timers.set(resource, timer);
  }

  onChange(listener: (resource: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  close(): void {
    for (const timer of this.#timers.values()) timer.cancel();
    this.#timers.clear();
    this.#listeners.clear();
  }
}
