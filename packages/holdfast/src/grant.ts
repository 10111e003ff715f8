import { NOWHERE } from "./agenda.js";
import type { Claim, Granted, Mode, Validity } from "./engine.js";
import type { HeldLease } from "./lease.js";

/**
 * Whether a request for this grantId may still be on its way: one whose answer was lost, or has not
 * come yet. While that is so, the release must leave a tombstone, or the straggler becomes an orphan.
 */
export class Doubt {
  lost = false;
  unanswered = 0;

  get exists(): boolean {
    return this.lost || this.unanswered > 0;
  }
}

/**
 * One grant as the core keeps it, and how long it is good. A cohort passes a grant from lease to
 * lease; at any time at most one lease stands on it.
 */
export class Grant {
  readonly resource: string;
  readonly grantId: string;
  readonly mode: Mode;
  readonly firstToken: bigint;
  readonly tokens: number;
  readonly lockDelayMs: number;
  readonly doubt: Doubt;
  readonly #drift: number;
  lease: HeldLease | null = null;
  /** What the next renewal asks for. */
  ttlMs: number;
  /** The life that validUntil was counted with; shorter than ttlMs where that is in doubt. */
  lifeMs: number;
  since: number;
  /** No other client can have been granted the resource before this instant. */
  validUntil: number;
  /** Pushed, and good for a while only: it needs one renewal, whether or not there are more to come. */
  unclaimed: boolean;
  /** All of these are kept by the keeper. */
  kept = false;
  place = NOWHERE;
  renewAt = Infinity;
  failures = 0;
  inDangerTold = false;
  askAgain = false;
  renewing: Promise<void> | null = null;
  // The shortest ttl of any renewal that was never answered. It may be carried out at any time, even
  // after a later and longer one, so nothing counts for more than this from then on.
  #doubtfulTtlMs = Infinity;

  constructor(claim: Claim, granted: Granted, drift: number, doubt: Doubt) {
    this.resource = claim.resource;
    this.grantId = claim.grantId;
    this.mode = claim.mode;
    this.lockDelayMs = claim.lockDelayMs;
    this.firstToken = granted.token;
    this.tokens = granted.tokens;
    this.doubt = doubt;
    this.#drift = drift;
    this.ttlMs = claim.ttlMs;
    this.lifeMs = granted.ttlMs;
    this.since = granted.since;
    this.validUntil = this.#endOf(granted.since, granted.ttlMs);
    this.unclaimed = granted.ttlMs < claim.ttlMs;
  }

  /** Whether a lease on this grant would not be lost on arrival. */
  isGoodFor(graceMs: number, now: number): boolean {
    return this.validUntil - graceMs * Math.min(1, this.lifeMs / this.ttlMs) > now;
  }

  confirm({ since, ttlMs }: Validity): void {
    this.since = since;
    this.ttlMs = ttlMs;
    this.lifeMs = Math.min(ttlMs, this.#doubtfulTtlMs);
    this.validUntil = this.#endOf(since, this.lifeMs);
    this.failures = 0;
    this.inDangerTold = false;
    this.unclaimed = false;
  }

  /**
   * Called before a renewal is sent. One with a shorter ttl may be carried out without our ever
   * hearing of it; from then on the backend's expiry is the nearer one.
   */
  expect(since: number, ttlMs: number): void {
    const end = this.#endOf(since, ttlMs);
    if (end >= this.validUntil) return;
    this.validUntil = end;
    this.lifeMs = ttlMs;
  }

  /** A renewal that was sent and not answered. */
  unanswered(ttlMs: number): void {
    this.#doubtfulTtlMs = Math.min(this.#doubtfulTtlMs, ttlMs);
  }

  #endOf(since: number, ttlMs: number): number {
    return since + ttlMs * (1 - this.#drift);
  }
}
