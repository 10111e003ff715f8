import { countBits } from "../voting/bits.js";
import type { QuorumClock } from "../voting/broadcast.js";

/** All waiters hear of a release at once. Those that claim at the same instant split the vote. */
const SPREAD_MS = 3;

interface Waiters {
  /** How many nodes must accept a claim. */
  readonly writeQuorum: number;
  /** Whether one of this client's claims waits with this ticket. */
  awaits(ticket: number): boolean;
  /** How long nodes take to answer. */
  readonly rttMs: number;
}

interface Gathered {
  readonly timer: { cancel(): void };
  /** Nodes that called the same waiter, a set of bits. */
  nodes: number;
}

/**
 * Gathers what the nodes tell about one release, and passes it on once. Nodes call the waiter that has
 * waited longest: it claims as soon as enough nodes have called it, and the other waiters stay where
 * they are. Where a node calls nobody, every waiter claims after a random delay.
 */
export class ReleaseNotifications {
  readonly #clock: QuorumClock;
  readonly #random: () => number;
  readonly #listeners = new Set<(resource: string) => void>();
  readonly #gathered = new Map<string, Gathered>();
  #waiters: Waiters | null = null;

  constructor(clock: QuorumClock, random: () => number) {
    this.#clock = clock;
    this.#random = random;
  }

  /** Sets the waiters whose claims are called. */
  serve(waiters: Waiters): void {
    this.#waiters = waiters;
  }

  /** ticket: the ticket of the waiter that is called; 0 calls all waiters. */
  hear(node: number, resource: string, ticket: number): void {
    const waiters = this.#waiters;
    if (this.#listeners.size === 0 || waiters === null) return;
    if (ticket > 0 && !waiters.awaits(ticket)) return;
    const key = `${ticket} ${resource}`;
    const tell = () => {
      this.#gathered.get(key)?.timer.cancel();
      this.#gathered.delete(key);
      for (const listener of this.#listeners) listener(resource);
    };
    let gathered = this.#gathered.get(key);
    if (gathered === undefined) {
      const spreadMs = Math.max(SPREAD_MS, waiters.rttMs);
      const afterMs = 1 + (ticket > 0 ? spreadMs : this.#random() * spreadMs);
      gathered = { timer: this.#clock.timer(afterMs, tell, false), nodes: 0 };
      this.#gathered.set(key, gathered);
    }
    gathered.nodes |= 1 << node;
    if (ticket > 0 && countBits(gathered.nodes) >= waiters.writeQuorum) tell();
  }

  onChange(listener: (resource: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  close(): void {
    for (const { timer } of this.#gathered.values()) timer.cancel();
    this.#gathered.clear();
    this.#listeners.clear();
  }
}
