import type { Claim, Granted, Mode } from "../../engine.js";
import type { SentClaim } from "../acquiring/sent-claim.js";
import { RenewalGroup } from "../renewing/renewal-group.js";
import type { HeldLease } from "./lease.js";

/**
 * One grant. A cohort hands a grant from lease to lease; at most one lease uses it at any time. Its
 * group says how long it is valid, and when to renew it.
 */
export class Grant {
  readonly resource: string;
  readonly grantId: string;
  readonly mode: Mode;
  readonly firstToken: bigint;
  readonly tokens: number;
  readonly lockDelayMs: number;
  /** The claim behind the grant, if a request for it may still be on its way; else null. */
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

  /** The index of the token in use. */
  get index(): number {
    return this.lease === null ? 0 : Number(this.lease.token - this.firstToken);
  }

  /** Marks the grant as unused. Returns whether its release must leave a tombstone. */
  end(): boolean {
    if (this.unanswered === null) return false;
    this.unanswered.isOver = true;
    return this.unanswered.mayArrive;
  }

  /** The new lease has its own terms, so the grant leaves its group. */
  attachLease(lease: HeldLease): void {
    this.lease = lease;
    this.leaveGroup().attachLease(lease);
  }

  /** Makes the grant a group of one, with a copy of what the group knew. */
  leaveGroup(): RenewalGroup {
    if (this.group.size > 1) this.group.leave(this);
    return this.group;
  }
}
