import type { Claim, Granted, Mode } from "../../engine.js";
import type { UnansweredRequests } from "../acquiring/unanswered-requests.js";
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
  readonly requests: UnansweredRequests;
  lease: HeldLease | null = null;
  /** Written by the groups only. */
  group: RenewalGroup;

  constructor(claim: Claim, granted: Granted, drift: number, requests: UnansweredRequests) {
    this.resource = claim.resource;
    this.grantId = claim.grantId;
    this.mode = claim.mode;
    this.lockDelayMs = claim.lockDelayMs;
    this.firstToken = granted.token;
    this.tokens = granted.tokens;
    this.requests = requests;
    this.group = new RenewalGroup(this, claim.ttlMs, granted, Math.ceil(drift * 1e6));
    this.group.needsFirstRenewal = granted.ttlMs < claim.ttlMs;
  }

  /** Which of its tokens is in use. */
  get index(): number {
    return this.lease === null ? 0 : Number(this.lease.token - this.firstToken);
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
