import { randomInt } from "node:crypto";
import type { Host } from "../../../url.js";

const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 1_000;

/** Which server to knock at next, and after which pause. */
export class Rounds {
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

  /** Once around without a pause; then ever slower, and not all clients at the same time. */
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
