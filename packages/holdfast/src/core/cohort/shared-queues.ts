import type { HolderView } from "../../engine.js";
import { limitMismatch } from "../../errors.js";
import type { Terms } from "../../options.js";
import type { HeldLease } from "../holding/lease.js";
import { type SharedHome, SharedQueue } from "./shared-queue.js";

/** The shared waiters of one process on one resource: a queue for each kind of terms. */
export class SharedQueues {
  readonly #resource: string;
  readonly #home: SharedHome;
  readonly #onIdle: () => void;
  readonly #queues = new Map<
    string,
    { readonly limit: number | null; readonly queue: SharedQueue }
  >();

  constructor(resource: string, home: SharedHome, onIdle: () => void) {
    this.#resource = resource;
    this.#home = home;
    this.#onIdle = onIdle;
  }

  /** Who of those that the backend does not know of is ahead of somebody who comes now; null if nobody. */
  get unsentHolders(): readonly HolderView[] | null {
    for (const { queue } of this.#queues.values()) if (queue.hasUnsent) return queue.holders;
    return null;
  }

  wait(terms: Terms, startedAt: number): Promise<HeldLease> {
    // The backend would say the same, but not before a claim of this waiter's gets there.
    for (const { limit, queue } of this.#queues.values()) {
      if (queue.isHeard && limit !== terms.limit) {
        return Promise.reject(limitMismatch(this.#resource, terms.limit, limit));
      }
    }
    return this.#queue(terms).wait(terms, startedAt);
  }

  close(error: Error): void {
    for (const { queue } of [...this.#queues.values()]) queue.close(error);
  }

  #queue(terms: Terms): SharedQueue {
    const { limit, ttlMs, lockDelayMs, graceMs, label } = terms;
    // What a claim says to the backend, and how much of its life a grant must have left.
    const key = JSON.stringify([limit, ttlMs, lockDelayMs, graceMs, label]);
    const known = this.#queues.get(key);
    if (known !== undefined) return known.queue;
    const queue = new SharedQueue(this.#resource, this.#home, () => {
      if (this.#queues.get(key)?.queue !== queue) return;
      this.#queues.delete(key);
      if (this.#queues.size === 0) this.#onIdle();
    });
    this.#queues.set(key, { limit, queue });
    return queue;
  }
}
