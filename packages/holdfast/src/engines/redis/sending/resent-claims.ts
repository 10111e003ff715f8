import { systemClock } from "../../../core/runtime/clock.js";

// As long as the core's own tombstones: no network holds a command back for longer.
const LATE_MS = 120_000;

/**
 * Claims that the client may have sent twice by itself. Of such a claim the first copy may arrive after
 * everything else, so whatever ends it leaves a tombstone.
 */
export class ResentClaims {
  /** Until when, in the order in which they end. */
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

  /** For how long the end of this claim must be remembered; 0 where nothing of it can be on its way. */
  tombstoneMs(grantId: string): number {
    return this.#until.size > 0 && this.#until.has(grantId) ? LATE_MS : 0;
  }
}
