import { AsyncResource } from "node:async_hooks";
import { Agenda, type Entry, NOWHERE } from "./agenda.js";
import type { Timer } from "./clock.js";

export interface Host {
  now(): number;
  timer(delayMs: number, callback: () => void): HostTimer;
}

export interface HostTimer extends Timer {
  /** Whether the process must not end before. */
  keepAlive(isKept: boolean): void;
}

// So long at most does the host's timer outlive the last of ours; and a delay longer than the 31 bits
// that it takes is walked in such pieces.
const LONGEST_NAP_MS = 1_000;
// So that none rings in the turn in which it was set.
const LEAST_DELAY_MS = 0.001;

/** One of many timers. */
class OneTimer implements Timer, Entry {
  place = NOWHERE;
  readonly callback: () => void;
  readonly keepAlive: boolean;
  readonly #all: Timers;

  constructor(all: Timers, callback: () => void, keepAlive: boolean) {
    this.#all = all;
    this.callback = callback;
    this.keepAlive = keepAlive;
  }

  cancel(): void {
    this.#all.cancel(this);
  }
}

/**
 * All timers of the process, on one of the host's. Nearly all of ours watch over something that is
 * done long before they are due: setting and cancelling one must cost next to nothing, so the host's
 * timer is not touched by it. It wakes too early then, finds nothing, and sleeps again or is gone.
 */
export class Timers {
  readonly #host: Host;
  readonly #agenda = new Agenda<OneTimer>();
  // Whoever happens to set the host's timer must not lend its context to everybody's callbacks.
  readonly #nobody = new AsyncResource("HoldfastTimers");
  #hosted: HostTimer | null = null;
  #wakeAt = Infinity;
  #keepAlive = 0;

  constructor(host: Host) {
    this.#host = host;
  }

  /** How many hold the process; the host sees one of them. */
  get keepingAlive(): number {
    return this.#keepAlive;
  }

  set(delayMs: number, callback: () => void, keepAlive: boolean): Timer {
    const timer = new OneTimer(this, callback, keepAlive);
    const now = this.#host.now();
    const at = now + Math.max(delayMs, LEAST_DELAY_MS);
    this.#agenda.set(timer, at);
    if (at < this.#wakeAt) this.#sleep(at, now);
    if (keepAlive && this.#keepAlive++ === 0) this.#hosted?.keepAlive(true);
    return timer;
  }

  cancel(timer: OneTimer): void {
    if (timer.place === NOWHERE) return;
    this.#agenda.delete(timer);
    this.#passed(timer);
  }

  #passed({ keepAlive }: OneTimer): void {
    if (keepAlive && --this.#keepAlive === 0) this.#hosted?.keepAlive(false);
  }

  #sleep(at: number, now: number): void {
    const napMs = Math.min(at - now, LONGEST_NAP_MS);
    if (this.#wakeAt <= now + napMs) return;
    this.#hosted?.cancel();
    this.#wakeAt = now + napMs;
    // Rounded up: one that fires early would find its deadline still ahead and spin.
    const arm = () => this.#host.timer(Math.ceil(napMs), () => this.#wake());
    this.#hosted = this.#nobody.runInAsyncScope(arm);
    this.#hosted.keepAlive(this.#keepAlive > 0);
  }

  #wake(): void {
    const now = this.#host.now();
    // While callbacks run, nobody needs to set the host's timer: it is set behind the last of them.
    this.#wakeAt = -Infinity;
    try {
      while (this.#agenda.earliest <= now) {
        const timer = this.#agenda.first!;
        this.#agenda.delete(timer);
        this.#passed(timer);
        timer.callback();
      }
    } finally {
      this.#hosted = null;
      this.#wakeAt = Infinity;
      if (this.#agenda.size > 0) this.#sleep(this.#agenda.earliest, this.#host.now());
    }
  }
}
