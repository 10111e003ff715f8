import type { HolderView } from "../../engine.js";
import { limitMismatch } from "../../errors.js";
import type { Terms } from "../../options.js";
import type { HeldLease } from "../holding/lease.js";
import { SharedQueue } from "./shared-queue.js";
import type { WaitContext } from "./wait-context.js";

/** The shared waiters of one process on one resource, with one queue for each set of terms. */
export class SharedQueues {
  readonly #resource: string;
  readonly #common: WaitContext;
  readonly #queues = new Map<
    string,
    { readonly limit: number | null; readonly queue: SharedQueue }
  >();

  constructor(resource: string, common: WaitContext) {
    this.#resource = resource;
    this.#common = common;
  }

  /**
   * The holders, if a local waiter without a claim is ahead of a newcomer; null if there is none.
   */
  get unsentHolders(): readonly HolderView[] | null {
    for (const { queue } of this.#queues.values()) if (queue.hasUnsent) return queue.holders;
    return null;
  }

  wait(terms: Terms, startedAt: number): Promise<HeldLease> {
    // The backend would refuse too, but only once this waiter's claim arrives there.
    for (const { limit, queue } of this.#queues.values()) {
      if (queue.isAnswered && limit !== terms.limit) {
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
    // Everything that a claim tells the backend, and the grace that a grant must have left.
    const key = JSON.stringify([limit, ttlMs, lockDelayMs, graceMs, label]);
    const known = this.#queues.get(key);
    if (known !== undefined) return known.queue;
    const queue = new SharedQueue(this.#resource, this.#common, () => {
      if (this.#queues.get(key)?.queue !== queue) return;
      this.#queues.delete(key);
      if (this.#queues.size === 0) this.#common.shared.delete(this.#resource);
    });
    this.#queues.set(key, { limit, queue });
    return queue;
  }
}
