import { randomInt } from "node:crypto";
import type { Host } from "../../../url.js";

const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 1_000;
// A part of the session's timeout, so that there is time for another server while a lease is valid.
const ATTEMPT = { part: 1 / 4, leastMs: 250, mostMs: 5_000 } as const;
const FIRST_ATTEMPT_MS = 500;

/** Chooses the next server to connect to, and the pause before it. */
export class ServerRotation {
  readonly #hosts: readonly Host[];
  #next: number;
  #tries = 0;

  constructor(hosts: readonly Host[]) {
    this.#hosts = hosts;
    this.#next = randomInt(hosts.length);
  }

  next(): Host {
    return this.#hosts[this.#next++ % this.#hosts.length]!;
  }

  /**
   * How long to wait for a server's welcome. A server that hangs must not use up the time of a call
   * while other servers work, so the first round is short. Each later round is three times as long,
   * for slow servers.
   */
  attemptMs(timeoutMs: number): number {
    const { part, leastMs, mostMs } = ATTEMPT;
    const wholeMs = Math.min(mostMs, Math.max(leastMs, timeoutMs * part));
    if (this.#hosts.length === 1) return wholeMs;
    const round = Math.floor(this.#tries / this.#hosts.length);
    return Math.min(wholeMs, FIRST_ATTEMPT_MS * 3 ** Math.min(round, 10));
  }

  /** The first round has no pause. Later pauses grow, with jitter so that clients do not meet. */
  pauseMs(timeoutMs: number): number {
    const round = Math.floor(this.#tries++ / this.#hosts.length);
    const mostMs = Math.min(LONGEST_PAUSE_MS, timeoutMs / 8);
    const pauseMs = round === 0 ? 0 : Math.min(mostMs, FIRST_PAUSE_MS * 2 ** Math.min(round, 10));
    return pauseMs * (0.75 + randomInt(500) / 1000);
  }

  welcomed(): void {
    this.#tries = 0;
  }
}
