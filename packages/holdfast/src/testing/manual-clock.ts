import type { Clock, Timer } from "../core/runtime/clock.js";

interface Pending {
  readonly at: number;
  readonly order: number;
  readonly callback: () => void;
  readonly keepAlive: boolean;
}

// A short chain of promises settles within one turn of the event loop; several turns leave room for
// code that itself waits for a turn.
const TURNS = 3;

/** A clock that stands still until it is told to move. Hand it to `connect` as `clock`. */
export class ManualClock implements Clock {
  steps = 0;
  #now: number;
  #order = 0;
  readonly #pending = new Set<Pending>();

  constructor(startAt = 1_000_000) {
    this.#now = startAt;
  }

  now(): number {
    return this.#now;
  }

  timer(delayMs: number, callback: () => void, keepAlive: boolean): Timer {
    const at = this.#now + Math.max(0, delayMs);
    const entry: Pending = { at, order: this.#order++, callback, keepAlive };
    this.#pending.add(entry);
    return { cancel: () => this.#pending.delete(entry) };
  }

  /** Timers that have neither run nor been cancelled. */
  get timers(): number {
    return this.#pending.size;
  }

  /** How many of these timers would keep a process alive. */
  get keepingAlive(): number {
    return [...this.#pending].filter((entry) => entry.keepAlive).length;
  }

  /**
   * Lets time pass. Due timers run one by one, each at its own instant. What a timer starts settles
   * before the next one runs. Timers that are set on the way run too, if they are due within the
   * same span.
   */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await turns();
    for (let next = this.#first(); next !== null && next.at <= end; next = this.#first()) {
      this.#pending.delete(next);
      this.#now = Math.max(this.#now, next.at);
      next.callback();
      await turns();
    }
    this.#now = end;
    await turns();
  }

  /**
   * Time passes and nothing runs, as in a blocked event loop or a stopped process. Timers that
   * became due run with the next advance.
   */
  pause(ms: number): void {
    this.#now += ms;
  }

  /** The wall clock jumps. No time passes. */
  step(): void {
    this.steps++;
  }

  #first(): Pending | null {
    let first: Pending | null = null;
    for (const entry of this.#pending) {
      const sooner = first === null || entry.at < first.at;
      if (sooner || (entry.at === first!.at && entry.order < first!.order)) first = entry;
    }
    return first;
  }
}

async function turns(): Promise<void> {
  for (let i = 0; i < TURNS; i++) await new Promise<void>((go) => setImmediate(go));
}
