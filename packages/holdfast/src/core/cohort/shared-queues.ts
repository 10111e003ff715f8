import type { HolderView } from "../../engine.js";
import { limitMismatch } from "../../errors.js";
import type { Terms } from "../../options.js";
import type { HeldLease } from "../holding/lease.js";
import { type SharedHome, SharedLine } from "./shared-queue.js";

/** The shared waiters of one process on one resource: a line for each kind of terms. */
export class SharedLines {
  readonly #resource: string;
  readonly #home: SharedHome;
  readonly #onIdle: () => void;
  readonly #lines = new Map<string, { readonly limit: number | null; readonly line: SharedLine }>();

  constructor(resource: string, home: SharedHome, onIdle: () => void) {
    this.#resource = resource;
    this.#home = home;
    this.#onIdle = onIdle;
  }

  /** Who of those that the backend does not know of is ahead of somebody who comes now; null if nobody. */
  get unsentHolders(): readonly HolderView[] | null {
    for (const { line } of this.#lines.values()) if (line.hasUnsent) return line.holders;
    return null;
  }

  wait(terms: Terms, startedAt: number): Promise<HeldLease> {
    // The backend would say the same, but not before a claim of this waiter's gets there.
    for (const { limit, line } of this.#lines.values()) {
      if (line.isHeard && limit !== terms.limit) {
        return Promise.reject(limitMismatch(this.#resource, terms.limit, limit));
      }
    }
    return this.#line(terms).wait(terms, startedAt);
  }

  close(error: Error): void {
    for (const { line } of [...this.#lines.values()]) line.close(error);
  }

  #line(terms: Terms): SharedLine {
    const { limit, ttlMs, lockDelayMs, graceMs, label } = terms;
    // What a claim says to the backend, and how much of its life a grant must have left.
    const key = JSON.stringify([limit, ttlMs, lockDelayMs, graceMs, label]);
    const known = this.#lines.get(key);
    if (known !== undefined) return known.line;
    const line = new SharedLine(this.#resource, this.#home, () => {
      if (this.#lines.get(key)?.line !== line) return;
      this.#lines.delete(key);
      if (this.#lines.size === 0) this.#onIdle();
    });
    this.#lines.set(key, { limit, line });
    return line;
  }
}
