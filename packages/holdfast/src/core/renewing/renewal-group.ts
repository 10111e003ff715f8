import type { RenewRef, Validity } from "../../engine.js";
import { invariant } from "../../errors.js";
import type { Terms } from "../../options.js";
import type { Grant } from "../holding/grant.js";
import type { HeldLease } from "../holding/lease.js";
import { type HeapEntry, NOWHERE } from "./deadline-heap.js";

// Leases on more kinds of terms than this in one batch are not grouped, as comparing would cost too much.
const MOST_KINDS = 8;

/** A renewal that was sent, or is about to be. */
export interface RenewalUnderWay {
  /** Settles, and never rejects, when the answer is written down. */
  readonly over: Promise<void>;
  /** The backend announced a change, so the next try must not wait. */
  skipRests?(): void;
}

/**
 * Grants that share one validity and are renewed together. A grant starts as a group of one. Groups that
 * one batch has renewed on equal terms become one group, so that renewing ten thousand leases writes
 * to ten groups and touches no grant. A grant that needs anything of its own leaves with a copy.
 */
export class RenewalGroup implements HeapEntry {
  place = NOWHERE;
  /** Whether the keeper looks after it. */
  managed = false;
  /** Pushed by the backend, and good for a claim window only: one renewal is needed in any case. */
  needsFirstRenewal = false;
  renewAt = Infinity;
  /** How many renewals failed since the last one that was answered. */
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
  // Of the lease that stands on it, or of one of those that stand on its grants.
  #terms: Terms | null = null;
  // Replaced, never changed: a batch under way keeps the list it was sent with. Grants that left may
  // stay in it for a while.
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

  /** What the next renewal asks for. */
  get ttlMs(): number {
    return this.#ttlMs;
  }

  /** The life that validUntil was counted with; shorter than ttlMs where that is in doubt. */
  get lifeMs(): number {
    return this.#lifeMs;
  }

  /** No other client can have been granted the resource before this instant. */
  get validUntil(): number {
    return this.#validUntil;
  }

  /** Whether it lives for this ttl, and no renewal under way or without an answer changes that. */
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

  /** A renewal with this ttl is about to be sent; a turn of the event loop may pass before it is. */
  willAsk(ttlMs: number): void {
    this.#askedTtlMs = ttlMs;
  }

  /**
   * Called when a renewal is sent. The backend may carry out one with a shorter ttl although its answer
   * never arrives; from then on the backend's expiry is the nearer one.
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

  // What follows from the terms of its leases

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

  /** As long as a whole ttl, one call would leave no time for another try. */
  get callTimeoutMs(): number {
    return Math.min(this.#terms!.callTimeoutMs, this.renewEveryMs);
  }

  get wantsRenewal(): boolean {
    const terms = this.#terms!;
    if (!terms.renew && !this.needsFirstRenewal) return false;
    // Validity that reaches maxHoldMs needs no more renewals: that is where the keeper stops.
    return terms.maxHoldMs === Infinity || this.lostAt < this.#holdUntil;
  }

  /**
   * When danger or loss comes next. In danger, a renewal is overdue, and at most one third of the life
   * is left; where renewals are so rare that this would come too late, a twentieth of it.
   */
  get watchAt(): number {
    const { lostAt } = this;
    if (this.dangerTold || !this.#terms!.renew) return lostAt;
    const overdueAt = Math.max(lostAt - this.#lifeMs / 3, this.#since + this.renewEveryMs * 1.5);
    return Math.min(overdueAt, lostAt - this.#lifeMs / 20);
  }

  /** The terms of a lease with maxHoldMs are never shared. */
  get #holdUntil(): number {
    return this.grants[0]!.lease!.holdUntil;
  }

  /** A life shorter than the one that the options were checked against shrinks them alike. */
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

  /** The same list as long as no grant comes or goes. */
  get refs(): readonly RenewRef[] {
    this.#refs ??= this.grants.map(({ resource, grantId, index }) => {
      return { resource, grantId, ttlMs: this.#ttlMs, index };
    });
    return this.#refs;
  }

  /** Whether no grant came or went since this was its list. */
  consistsOf(grants: readonly Grant[]): boolean {
    return this.#grants === grants && this.#size === grants.length;
  }

  /** A new lease stands on the one grant of this group. */
  attachLease({ terms }: HeldLease): void {
    invariant(this.#size === 1, "a grant with a new lease is alone");
    this.#terms = terms;
    // The lease uses another token.
    this.#refs = null;
  }

  /** One of several grants goes on alone, with a copy of all that is known. */
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

  /** Whether it may be renewed together with others: it has no instant of its own. */
  get canShareRenewal(): boolean {
    const terms = this.#terms!;
    return this.managed && terms.renew && terms.maxHoldMs === Infinity && !this.askAgain;
  }

  /** Whether two that were just confirmed are good, in danger and due at the same instants. */
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

  /** Takes over all grants of other groups on the same terms. Those groups are not managed any more. */
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

/**
 * Groups that one batch has renewed: those on the same terms become one. Returns those that go on, and
 * calls back for each that does not.
 */
export function regroup(
  groups: readonly RenewalGroup[],
  onAbsorbed: (group: RenewalGroup) => void,
): readonly RenewalGroup[] {
  if (groups.length < 2) return groups;
  const apart: RenewalGroup[] = [];
  const kinds: RenewalGroup[][] = [];
  for (const group of groups) {
    const kind = group.canShareRenewal
      ? kinds.find(([one]) => group.hasSameTerms(one!))
      : undefined;
    if (kind !== undefined) kind.push(group);
    else if (group.canShareRenewal && kinds.length < MOST_KINDS) kinds.push([group]);
    else apart.push(group);
  }
  return apart.concat(kinds.map((kind) => merge(kind, onAbsorbed)));
}

function merge(
  groups: readonly RenewalGroup[],
  onAbsorbed: (group: RenewalGroup) => void,
): RenewalGroup {
  const largest = groups.reduce((one, other) => (other.size > one.size ? other : one));
  const others = groups.filter((group) => group !== largest);
  if (others.length > 0) largest.absorb(others);
  for (const other of others) onAbsorbed(other);
  return largest;
}
