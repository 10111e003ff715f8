import { systemClock, type Timer } from "../../../core/runtime/clock.js";
import type { Requests } from "./requests.js";

// Of the time that somebody has for an answer: the rest is for asking another server.
const PART = 1 / 2;
// A pause of the server that is shorter than this is none: a collector of garbage, a slow disk.
const LEAST_MS = 1_500;
// A timer that is later than this tells that we were away ourselves, and answers may lie there unread.
const AWAY_MS = 250;

/**
 * Notices a server that hangs: somebody's time for an answer is half over, and nothing was heard since it
 * was asked for. The session's own timeout may be far longer than a lease that is written down in a record.
 */
export class Silence {
  readonly #requests: Requests;
  readonly #onSilence: (silentMs: number) => void;
  #heardAt = -Infinity;
  #dueAt = Infinity;
  #timer: Timer | null = null;

  constructor(requests: Requests, onSilence: (silentMs: number) => void) {
    this.#requests = requests;
    this.#onSilence = onSilence;
  }

  heard(at: number): void {
    this.#heardAt = at;
  }

  /** A request was sent that has so long. */
  sent(until: number): void {
    const now = systemClock.now();
    const dueAt = now + patienceMs(now, until);
    if (dueAt < this.#dueAt) this.#arm(dueAt);
  }

  end(): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.#dueAt = Infinity;
  }

  #arm(dueAt: number): void {
    this.#timer?.cancel();
    this.#dueAt = dueAt;
    this.#timer = systemClock.timer(dueAt - systemClock.now(), () => this.#look(dueAt), false);
  }

  #look(expectedAt: number): void {
    this.end();
    const now = systemClock.now();
    if (now - expectedAt > AWAY_MS) {
      this.#arm(now + AWAY_MS);
      return;
    }
    let next = Infinity;
    for (const { sentAt, until } of this.#requests.underWay) {
      const from = Math.max(sentAt, this.#heardAt);
      next = Math.min(next, from + patienceMs(sentAt, until));
    }
    if (next > now) {
      if (next < Infinity) this.#arm(next);
    } else {
      this.#onSilence(now - Math.max(this.#heardAt, this.#requests.oldest!.sentAt));
    }
  }
}

function patienceMs(sentAt: number, until: number): number {
  return Math.max((until - sentAt) * PART, LEAST_MS);
}
