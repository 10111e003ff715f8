import type { Claim, Granted, Mode } from "../../engine.js";
import type { SentClaim } from "../acquiring/sent-claim.js";
import { RenewalGroup } from "../renewing/renewal-group.js";
import type { HeldLease } from "./lease.js";

/**
 * One grant as the core keeps it. A cohort passes a grant from lease to lease; at any time at most one
 * lease stands on it. Its group says how long it is good, and when to renew it.
 */
export class Grant {
  readonly resource: string;
  readonly grantId: string;
  readonly mode: Mode;
  readonly firstToken: bigint;
  readonly tokens: number;
  readonly lockDelayMs: number;
  /** The claim that it was granted to, where a request for it may still be on its way. */
  readonly unanswered: SentClaim | null;
  lease: HeldLease | null = null;
  /** Written by the groups only. */
  group: RenewalGroup;

  constructor(claim: Claim, granted: Granted, drift: number, unanswered: SentClaim | null) {
    this.resource = claim.resource;
    this.grantId = claim.grantId;
    this.mode = claim.mode;
    this.lockDelayMs = claim.lockDelayMs;
    this.firstToken = granted.token;
    this.tokens = granted.tokens;
    this.unanswered = unanswered;
    this.group = new RenewalGroup(this, claim.ttlMs, granted, Math.ceil(drift * 1e6));
    this.group.needsFirstRenewal = granted.ttlMs < claim.ttlMs;
  }

  /** Which of its tokens is in use. */
  get index(): number {
    return this.lease === null ? 0 : Number(this.lease.token - this.firstToken);
  }

  /** Nobody wants it any more. Gives whether its release must leave a tombstone. */
  end(): boolean {
    if (this.unanswered === null) return false;
    this.unanswered.isOver = true;
    return this.unanswered.mayArrive;
  }

  /** The terms of the new lease are its own, so the grant leaves those that it was renewed with. */
  attachLease(lease: HeldLease): void {
    this.lease = lease;
    this.leaveGroup().attachLease(lease);
  }

  /** From now on it is a group of one, with a copy of what is known where it was one of several. */
  leaveGroup(): RenewalGroup {
    if (this.group.size > 1) this.group.leave(this);
    return this.group;
  }
}
