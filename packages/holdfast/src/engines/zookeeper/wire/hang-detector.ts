import { systemClock, type Timer } from "../../../core/runtime/clock.js";
import type { Requests } from "./requests.js";

// The part of a request's time to wait for this server. The rest is for another server.
const PART = 1 / 2;
// A shorter pause of a server is normal: garbage collection, or a slow disk.
const LEAST_MS = 1_500;
// If a timer is later than this, we were suspended ourselves, and answers may be unread.
const AWAY_MS = 250;

/**
 * Notices a server that hangs: half of a request's time is over, and nothing was received since it
 * was sent. The session's own timeout may be far longer than a lease that is stored in a record.
 */
export class HangDetector {
  readonly #requests: Requests;
  readonly #onHang: (silentMs: number) => void;
  #heardAt = -Infinity;
  #dueAt = Infinity;
  #timer: Timer | null = null;

  constructor(requests: Requests, onHang: (silentMs: number) => void) {
    this.#requests = requests;
    this.#onHang = onHang;
  }

  heard(at: number): void {
    this.#heardAt = at;
  }

  /** A request was sent whose time ends at `until`. */
  sent(until: number): void {
    const now = systemClock.now();
    const dueAt = now + mostSilentMs(now, until);
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
      next = Math.min(next, from + mostSilentMs(sentAt, until));
    }
    if (next > now) {
      if (next < Infinity) this.#arm(next);
    } else {
      this.#onHang(now - Math.max(this.#heardAt, this.#requests.oldest!.sentAt));
    }
  }
}

function mostSilentMs(sentAt: number, until: number): number {
  return Math.max((until - sentAt) * PART, LEAST_MS);
}
