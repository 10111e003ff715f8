import type { QuorumClock } from "../voting/broadcast.js";

/** Smaller steps are noise: reading two clocks on a busy machine takes time. */
const NOISE_MS = 50;

interface Reading {
  /** The node's time minus our time lies between low and high, in ms. */
  readonly low: number;
  readonly high: number;
  readonly at: number;
}

export interface Suspicion {
  readonly node: number;
  /** The least by which its clock moved. */
  readonly movedMs: number;
}

/**
 * Compares the nodes' clocks with our own monotonic clock. A node whose clock was stepped may have ended
 * grants early, so its yes does not count for as long as such a grant could have lived.
 */
export class ClockWatch {
  readonly #clock: QuorumClock;
  readonly #drift: number;
  readonly #suspectMs: number;
  readonly #report: (suspicion: Suspicion) => void;
  readonly #readings: (Reading | null)[];
  readonly #suspectUntil: number[];

  constructor(
    size: number,
    clock: QuorumClock,
    drift: number,
    suspectMs: number,
    report: (suspicion: Suspicion) => void,
  ) {
    this.#clock = clock;
    this.#drift = drift;
    this.#suspectMs = suspectMs;
    this.#report = report;
    this.#readings = new Array(size).fill(null);
    this.#suspectUntil = new Array(size).fill(-Infinity);
  }

  isSuspect(node: number): boolean {
    return this.#clock.now() < this.#suspectUntil[node]!;
  }

  /** The node answered a request of sentAt, and its clock read `us`. */
  sample(node: number, sentAt: number, us: number): void {
    const now = this.#clock.now();
    const reading = { low: us / 1e3 - now, high: us / 1e3 - sentAt, at: now };
    const last = this.#readings[node];
    if (last) {
      const apartMs = Math.max(reading.low - last.high, last.low - reading.high);
      if (apartMs > NOISE_MS + (now - last.at) * this.#drift) {
        this.#suspectUntil[node] = now + this.#suspectMs;
        this.#report({ node, movedMs: apartMs });
      } else if (last.high - last.low < reading.high - reading.low && now - last.at < 1_000) {
        // A slow answer says little about the clock, so the sharper reading is kept for a while.
        return;
      }
    }
    this.#readings[node] = reading;
  }

  /** The median of what the nodes' clocks read now, in µs; 0 until a node has answered. */
  estimateUs(): number {
    const known: number[] = [];
    for (const reading of this.#readings) if (reading !== null) known.push(reading.low);
    if (known.length === 0) return 0;
    known.sort((a, b) => a - b);
    return Math.floor((this.#clock.now() + known[known.length >> 1]!) * 1e3);
  }
}
