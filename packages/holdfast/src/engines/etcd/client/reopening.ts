import { systemClock, type Timer } from "../../../core/runtime/clock.js";

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2_000;

/**
 * Decides when streams that ended are opened again: soon at first, and later each time while none
 * of them opens. Streams that end together wait together, so that many lost streams count as one
 * failure.
 */
export class Reopening {
  readonly #acts = new Set<() => void>();
  #timer: Timer | null = null;
  #failures = 0;
  #closed = false;

  /** A stream is open, so the next one that ends is opened again soon. */
  opened(): void {
    this.#failures = 0;
  }

  /** An act that is passed twice runs once. */
  later(act: () => void): void {
    if (this.#closed) return;
    this.#acts.add(act);
    if (this.#timer !== null) return;
    const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** Math.min(this.#failures, 10), LONGEST_PAUSE_MS);
    this.#failures++;
    this.#timer = systemClock.timer(pauseMs, () => this.#open(), false);
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
    this.#acts.clear();
  }

  #open(): void {
    this.#timer = null;
    const acts = [...this.#acts];
    this.#acts.clear();
    for (const act of acts) act();
  }
}
