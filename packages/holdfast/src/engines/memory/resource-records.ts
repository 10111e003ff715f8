import type { Claim, HolderView, ResourceView } from "../../engine.js";
import { limitMismatch } from "../../errors.js";
import { Queue } from "./queue.js";

// A refused or queued claim is told about this many holders at most. Otherwise every heartbeat
// would list thousands of readers again.
const MAX_HOLDERS_REPORTED = 16;
const SPARE_ENTRIES = 16;

/** A grant as the store keeps it. It blocks others until its lock-delay is over. */
export interface MemoryGrant {
  readonly claim: Claim;
  readonly token: bigint;
  /** When the ttl started, and how long it is. A renewal changes both. */
  since: number;
  ttlMs: number;
  expiresAt: number;
  /** The number of the latest renewal. A renewal with a smaller number comes too late. */
  order: number;
  /** Which of the grant's tokens is in use. */
  index: number;
  /** The holder has left this grant: only time, or force, ends it. */
  left: boolean;
  revoked: boolean;
}

/**
 * The records of one resource: one exclusive grant or any number of shared ones, and the queue.
 */
export class ResourceRecords {
  readonly grants = new Map<string, MemoryGrant>();
  /** First come, first served. A waiter is eligible only if every waiter before it is. */
  readonly queue = new Queue();
  /** Sorted by token, for binary search. Grants that have ended stay in it for a while. */
  #byToken: MemoryGrant[] = [];
  // The claim of the latest grant. All current grants have its mode and its limit.
  #latestClaim: Claim | null = null;
  // No grant ends before this instant, so removeEnded need not read the grants until then. It
  // may be too early, because a renewal does not move it.
  #earliestEnd = Infinity;

  get isEmpty(): boolean {
    return this.grants.size === 0 && this.queue.length === 0;
  }

  add(grant: MemoryGrant): void {
    this.#latestClaim = grant.claim;
    this.grants.set(grant.claim.grantId, grant);
    this.#byToken.push(grant);
    if (this.#byToken.length > 2 * this.grants.size + SPARE_ENTRIES) this.#removeEndedFromByToken();
    this.noteEnd(grant);
  }

  /** Must be called when a grant is added, or when its end changes. */
  noteEnd({ expiresAt, claim }: MemoryGrant): void {
    this.#earliestEnd = Math.min(this.#earliestEnd, expiresAt + claim.lockDelayMs);
  }

  /** Removes the grants whose ttl and lock-delay are over. */
  removeEnded(now: number): void {
    if (now < this.#earliestEnd) return;
    this.#earliestEnd = Infinity;
    for (const [grantId, grant] of this.grants) {
      if (grant.expiresAt + grant.claim.lockDelayMs <= now) this.grants.delete(grantId);
      else this.noteEnd(grant);
    }
  }

  /** No grant ends by time before this much time has passed. */
  nextEndMs(now: number): number {
    return this.grants.size === 0 ? Infinity : this.#earliestEnd - now;
  }

  fits(claim: Claim): boolean {
    const sample = this.#sampleClaim;
    if (sample === null) return true;
    if (claim.mode === "exclusive" || sample.mode === "exclusive") return false;
    return claim.limit === null || this.grants.size < claim.limit;
  }

  /** All shared claims of a resource have one limit, so any holder or waiter shows it. */
  refuseOtherLimit(claim: Claim): void {
    if (claim.mode !== "shared") return;
    const sample = this.#sampleClaim;
    const limit = sample?.mode === "shared" ? sample.limit : this.queue.limit;
    if (limit === undefined || limit === claim.limit) return;
    throw limitMismatch(claim.resource, claim.limit, limit);
  }

  /** The live grant to which the token belongs. */
  find(token: bigint, now: number): MemoryGrant | null {
    let [low, high] = [0, this.#byToken.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#byToken[middle]!.token <= token) low = middle + 1;
      else high = middle;
    }
    const found = this.#byToken[low - 1];
    if (found === undefined || !this.#isCurrent(found) || found.expiresAt <= now) return null;
    return token < found.token + BigInt(found.claim.tokens) ? found : null;
  }

  /** The holders that block a claim, up to MAX_HOLDERS_REPORTED. */
  holders(now: number): HolderView[] {
    const views: HolderView[] = [];
    for (const grant of this.grants.values()) {
      if (grant.expiresAt > now) views.push(holderView(grant, now));
      if (views.length === MAX_HOLDERS_REPORTED) break;
    }
    return views;
  }

  view(resource: string, now: number): ResourceView {
    const holders: HolderView[] = [];
    let closedMs = 0;
    for (const grant of this.grants.values()) {
      const { expiresAt, claim } = grant;
      if (expiresAt > now) holders.push(holderView(grant, now));
      else closedMs = Math.max(closedMs, expiresAt + claim.lockDelayMs - now);
    }
    const waiters = [...this.queue].map(({ claim: { mode, label } }, position) => ({
      mode,
      label,
      position,
    }));
    return { resource, holders, waiters, closedMs };
  }

  /** A claim with the mode and limit that all holders have; null if there is no holder. */
  get #sampleClaim(): Claim | null {
    return this.grants.size === 0 ? null : this.#latestClaim;
  }

  #isCurrent(grant: MemoryGrant): boolean {
    return this.grants.get(grant.claim.grantId) === grant;
  }

  #removeEndedFromByToken(): void {
    this.#byToken = this.#byToken.filter((grant) => this.#isCurrent(grant));
  }
}

export function tokenInUse({ token, index }: MemoryGrant): bigint {
  return token + BigInt(index);
}

function holderView(grant: MemoryGrant, now: number): HolderView {
  const { claim, expiresAt, revoked } = grant;
  const { mode, label } = claim;
  return { mode, token: tokenInUse(grant), label, remainingMs: expiresAt - now, revoked };
}
