import { systemClock } from "../../../core/runtime/clock.js";

// The same as the core's own tombstones: no network delays a command for longer.
const LATE_MS = 120_000;

/**
 * Claims that the client may have sent twice by itself. The first copy of such a claim may arrive
 * after everything else, so the end of the claim must leave a tombstone.
 */
export class ResentClaims {
  /** By grant id, until when a copy may arrive; in that order. */
  readonly #until = new Map<string, number>();

  add(grantId: string): void {
    const now = systemClock.now();
    for (const [old, until] of this.#until) {
      if (until > now) break;
      this.#until.delete(old);
    }
    this.#until.delete(grantId);
    this.#until.set(grantId, now + LATE_MS);
  }

  /** How long the end of this claim must be remembered; 0 where no copy of it can be on its way. */
  tombstoneMs(grantId: string): number {
    return this.#until.size > 0 && this.#until.has(grantId) ? LATE_MS : 0;
  }
}
