import type { QuorumClock } from "../voting/broadcast.js";
import type { Quorum } from "../voting/quorum.js";

/** Noticing a quarantine a quarter of its length late costs little; probing more often costs every node. */
const PART = 1 / 4;
const LEAST_MS = 250;
const MOST_MS = 15_000;

/**
 * Asks all nodes now and then while the client is idle. A quarantine begins when a client sees it:
 * without probes, nodes that restarted while all clients were idle would still have it ahead of them.
 */
export class IdleProbe {
  readonly #quorum: Quorum;
  readonly #clock: QuorumClock;
  readonly #everyMs: number;
  #timer: { cancel(): void } | null = null;
  #closed = false;

  constructor(quorum: Quorum, clock: QuorumClock, maxTtlMs: number) {
    this.#quorum = quorum;
    this.#clock = clock;
    this.#everyMs = Math.min(MOST_MS, Math.max(LEAST_MS, maxTtlMs * PART));
  }

  start(): void {
    if (this.#timer !== null || this.#closed) return;
    this.#timer = this.#clock.timer(this.#everyMs, () => this.#look(), false);
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
  }

  #look(): void {
    this.#timer = null;
    if (this.#clock.now() - this.#quorum.askedAt >= this.#everyMs) {
      for (let node = 0; node < this.#quorum.size; node++) {
        this.#quorum.ask(node, { verb: "inspect", resource: "holdfast" }, () => {});
      }
    }
    this.start();
  }
}
