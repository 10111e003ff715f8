import type { Claim, Granted, Mode, Validity } from "./engine.js";
import type { HeldLease } from "./lease.js";

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
  readonly drift: number;
  lease: HeldLease | null = null;
  ttlMs: number;
  since: number;
  /** No other client can have been granted the resource before this instant. */
  validUntil: number;
  /** Kept by the keeper. */
  renewAt = Infinity;
  failures = 0;
  inDangerTold = false;
  renewing: Promise<void> | null = null;

  constructor(claim: Claim, granted: Granted, drift: number) {
    this.resource = claim.resource;
    this.grantId = claim.grantId;
    this.mode = claim.mode;
    this.lockDelayMs = claim.lockDelayMs;
    this.firstToken = granted.token;
    this.tokens = granted.tokens;
    this.drift = drift;
    this.ttlMs = claim.ttlMs;
    this.since = granted.since;
    this.validUntil = endOf(granted, drift);
  }

  confirm(validity: Validity): void {
    this.since = validity.since;
    this.ttlMs = validity.ttlMs;
    this.validUntil = endOf(validity, this.drift);
    this.failures = 0;
    this.inDangerTold = false;
  }

  /**
   * Called before a renewal is sent. One with a shorter ttl may be carried out without our ever
   * hearing of it; from then on the backend's expiry is the nearer one.
   */
  expect(validity: Validity): void {
    this.validUntil = Math.min(this.validUntil, endOf(validity, this.drift));
  }
}

function endOf(validity: Validity, drift: number): number {
  return validity.since + validity.ttlMs * (1 - drift);
}
