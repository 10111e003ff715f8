import type { RenewRef, Validity } from "../../engine.js";
import { invariant } from "../../errors.js";
import type { Terms } from "../../options.js";
import type { Grant } from "../holding/grant.js";
import type { HeldLease } from "../holding/lease.js";
import { type HeapEntry, NOWHERE } from "./deadline-heap.js";

/** A renewal that was sent, or is about to be. */
export interface RenewalUnderWay {
  /** Settles when the answer has been applied; never rejects. */
  readonly over: Promise<void>;
  /** The backend reported a change, so the next try must not wait. */
  skipRests?(): void;
}

/**
 * Grants that share one validity and are renewed together. A grant starts as a group of one. Groups
 * that one batch renewed on equal terms become one group, so renewing ten thousand leases writes to
 * ten groups and touches no grant. A grant that needs anything of its own leaves with a copy.
 */
export class RenewalGroup implements HeapEntry {
  place = NOWHERE;
  /** Whether the keeper renews this group. */
  managed = false;
  /**
   * The grant was pushed and is valid for a claim window only, so it needs one renewal in any case.
   */
  needsFirstRenewal = false;
  renewAt = Infinity;
  /** How many renewals failed since the last answered one. */
  failures = 0;
  dangerTold = false;
  renewing: RenewalUnderWay | null = null;
  /** Something changed while a renewal was under way, so its answer may be out of date. */
  askAgain = false;
  // Parts per million, because V8 boxes fractional fields. Rounded up, so validity only gets shorter.
  readonly #driftPpm: number;
  #since: number;
  #ttlMs: number;
  #lifeMs: number;
  #validUntil: number;
  #askedTtlMs: number;
  // The terms of one of its leases; in a group all have equal ones.
  #terms: Terms | null = null;
  // Replaced, never changed, because a batch under way keeps the list that it was sent with. Grants
  // that left may stay in it for a while.
  #grants: readonly Grant[];
  #size = 1;
  #refs: readonly RenewRef[] | null = null;

  constructor(grant: Grant, askedTtlMs: number, { since, ttlMs }: Validity, driftPpm: number) {
    this.#driftPpm = driftPpm;
    this.#grants = [grant];
    this.#since = since;
    this.#ttlMs = askedTtlMs;
    this.#askedTtlMs = askedTtlMs;
    this.#lifeMs = ttlMs;
    this.#validUntil = this.#endOf(since, ttlMs);
  }

  // Validity

  get since(): number {
    return this.#since;
  }

  /** The ttl that the next renewal asks for. */
  get ttlMs(): number {
    return this.#ttlMs;
  }

  /**
   * The life that validUntil was computed with. Shorter than ttlMs for a pushed grant, and while a
   * renewal with a shorter ttl is unanswered.
   */
  get lifeMs(): number {
    return this.#lifeMs;
  }

  /** No other client can have been granted the resource before this instant. */
  get validUntil(): number {
    return this.#validUntil;
  }

  /** Whether this is its ttl, and no unanswered renewal can change that. */
  livesFor(ttlMs: number): boolean {
    return this.#ttlMs === ttlMs && this.#askedTtlMs === ttlMs;
  }

  /** Whether a lease on this grant would not be lost on arrival. */
  isGoodFor(graceMs: number, now: number): boolean {
    return this.#validUntil - graceMs * Math.min(1, this.#lifeMs / this.#ttlMs) > now;
  }

  /** The backend answered a renewal. */
  confirm({ since, ttlMs }: Validity): void {
    if (ttlMs !== this.#ttlMs) this.#refs = null;
    this.#since = since;
    this.#ttlMs = ttlMs;
    this.#lifeMs = ttlMs;
    this.#validUntil = this.#endOf(since, ttlMs);
    this.failures = 0;
    this.dangerTold = false;
    this.needsFirstRenewal = false;
  }

  /** Called before a renewal with this ttl is sent, which may be a turn of the event loop later. */
  willAsk(ttlMs: number): void {
    this.#askedTtlMs = ttlMs;
  }

  /**
   * Called when a renewal is sent. The backend may carry out a renewal with a shorter ttl although
   * its answer never arrives. From then on we must assume the earlier expiry.
   */
  expect(since: number, ttlMs: number): void {
    this.#askedTtlMs = ttlMs;
    const end = this.#endOf(since, ttlMs);
    if (end >= this.#validUntil) return;
    this.#validUntil = end;
    this.#lifeMs = ttlMs;
  }

  #endOf(since: number, ttlMs: number): number {
    return since + ttlMs * (1 - this.#driftPpm / 1e6);
  }

  // Instants and durations that follow from the terms of its leases

  /** The instant from which the holder may no longer act. */
  get lostAt(): number {
    const terms = this.#terms!;
    const end = this.#validUntil - terms.graceMs * this.#scaleOf(terms);
    return terms.maxHoldMs === Infinity ? end : Math.min(end, this.#holdUntil);
  }

  get renewEveryMs(): number {
    const terms = this.#terms!;
    return terms.renewEveryMs * this.#scaleOf(terms);
  }

  /** A call that took a whole ttl would leave no time for another try. */
  get callTimeoutMs(): number {
    return Math.min(this.#terms!.callTimeoutMs, this.renewEveryMs);
  }

  get wantsRenewal(): boolean {
    const terms = this.#terms!;
    if (!terms.renew && !this.needsFirstRenewal) return false;
    // Once validity reaches maxHoldMs, no more renewals are needed.
    return terms.maxHoldMs === Infinity || this.lostAt < this.#holdUntil;
  }

  /**
   * The next instant of danger or loss. A lease is in danger when a renewal is overdue and at most
   * a third of the life is left. Where renewals are so rare that this would come too late, a
   * twentieth of the life counts.
   */
  get watchAt(): number {
    const { lostAt } = this;
    if (this.dangerTold || !this.#terms!.renew) return lostAt;
    const overdueAt = Math.max(lostAt - this.#lifeMs / 3, this.#since + this.renewEveryMs * 1.5);
    return Math.min(overdueAt, lostAt - this.#lifeMs / 20);
  }

  /** A lease with maxHoldMs is never in a group with others. */
  get #holdUntil(): number {
    return this.grants[0]!.lease!.holdUntil;
  }

  /** A life shorter than the ttl of the options scales the other times down by the same factor. */
  #scaleOf({ ttlMs }: Terms): number {
    return this.#lifeMs < ttlMs ? this.#lifeMs / ttlMs : 1;
  }

  // Membership

  get size(): number {
    return this.#size;
  }

  get grants(): readonly Grant[] {
    if (this.#size < this.#grants.length) this.#tidy();
    return this.#grants;
  }

  get leases(): readonly HeldLease[] {
    return this.grants.map(({ lease }) => lease!);
  }

  /** The same list until a grant joins or leaves. */
  get refs(): readonly RenewRef[] {
    this.#refs ??= this.grants.map(({ resource, grantId, index }) => {
      return { resource, grantId, ttlMs: this.#ttlMs, index };
    });
    return this.#refs;
  }

  /** Whether no grant joined or left since the group had this list. */
  consistsOf(grants: readonly Grant[]): boolean {
    return this.#grants === grants && this.#size === grants.length;
  }

  /** A new lease uses the one grant of this group. */
  attachLease({ terms }: HeldLease): void {
    invariant(this.#size === 1, "a grant with a new lease is alone");
    this.#terms = terms;
    // The lease uses another token.
    this.#refs = null;
  }

  /** Moves one of several grants into a group of one, with a copy of all that is known. */
  leave(grant: Grant): void {
    invariant(grant.group === this && this.#size > 1, "a grant leaves others behind");
    const alone = new RenewalGroup(grant, this.#askedTtlMs, this, this.#driftPpm);
    alone.#ttlMs = this.#ttlMs;
    alone.#lifeMs = this.#lifeMs;
    alone.#validUntil = this.#validUntil;
    alone.#terms = this.#terms;
    alone.managed = this.managed;
    alone.renewAt = this.renewAt;
    alone.failures = this.failures;
    alone.dangerTold = this.dangerTold;
    alone.renewing = this.renewing;
    grant.group = alone;
    this.#size--;
    this.#refs = null;
    // A grant that left must not be kept alive for long.
    if (this.#size * 2 < this.#grants.length) this.#tidy();
  }

  /** Whether the group may be merged with others: it needs no instants of its own. */
  get canShareRenewal(): boolean {
    const terms = this.#terms!;
    return this.managed && terms.renew && terms.maxHoldMs === Infinity && !this.askAgain;
  }

  /**
   * Whether two groups that were just confirmed are valid, in danger and due at the same instants.
   */
  hasSameTerms(other: RenewalGroup): boolean {
    const [mine, others] = [this.#terms!, other.#terms!];
    return (
      this.#since === other.#since &&
      this.#ttlMs === other.#ttlMs &&
      this.#askedTtlMs === other.#askedTtlMs &&
      (mine === others ||
        (mine.ttlMs === others.ttlMs &&
          mine.graceMs === others.graceMs &&
          mine.renewEveryMs === others.renewEveryMs &&
          mine.callTimeoutMs === others.callTimeoutMs))
    );
  }

  /**
   * Takes over all grants of other groups on the same terms. Those groups are no longer managed.
   */
  absorb(others: readonly RenewalGroup[]): void {
    const more: Grant[] = [];
    for (const other of others) {
      for (const grant of other.grants) more.push(grant);
      other.managed = false;
    }
    for (const grant of more) grant.group = this;
    this.#grants = this.grants.concat(more);
    this.#size = this.#grants.length;
    this.#refs = null;
  }

  #tidy(): void {
    this.#grants = this.#grants.filter(({ group }) => group === this);
  }
}
