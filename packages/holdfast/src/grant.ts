import { NOWHERE } from "./agenda.js";
import type { Company } from "./company.js";
import type { Claim, Granted, Mode, Validity } from "./engine.js";
import type { HeldLease } from "./lease.js";
import type { Terms } from "./options.js";

/**
 * Whether a request for this grantId may still be on its way: one whose answer was lost, or has not
 * come yet. While that is so, the release must leave a tombstone, or the straggler becomes an orphan.
 */
export class Doubt {
  lost = false;
  unanswered = 0;
  #over = false;

  get exists(): boolean {
    return this.lost || this.unanswered > 0;
  }

  /** Whether nobody wants it any more: a grant that is told of from then on is nobody's. */
  get isOver(): boolean {
    return this.#over;
  }

  end(): void {
    this.#over = true;
  }
}

/** Nothing about it is under way, and nothing was lost: that stays so, whoever shares it. */
export const CERTAIN: Doubt = new Doubt();

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
  // In millionths, as a fraction takes a place of its own on the heap; of no lease is more promised by that.
  readonly #driftPpm: number;
  lease: HeldLease | null = null;
  /** Pushed, and good for a while only: it needs one renewal, whether or not there are more to come. */
  unclaimed: boolean;
  /** All of these are kept by the keeper. */
  kept = false;
  fresh = false;
  place = NOWHERE;
  company: Company | null = null;
  askAgain = false;
  // From here on: what counts while it is alone or leads its company.
  renewAt = Infinity;
  failures = 0;
  inDangerTold = false;
  renewing: Promise<void> | null = null;
  #since: number;
  #ttlMs: number;
  #lifeMs: number;
  #validUntil: number;
  // What the latest renewal asked for, answered or not.
  #askedTtlMs: number;
  // Of the lease that stands on it: ten thousand renewals need not touch ten thousand leases. What can
  // be told from them is not written down: every fraction takes a place of its own on the heap, and
  // the collector's shortest pause grows with the heap that a million grants make.
  #terms: Terms | null = null;

  constructor(claim: Claim, granted: Granted, drift: number, doubt: Doubt) {
    this.resource = claim.resource;
    this.grantId = claim.grantId;
    this.mode = claim.mode;
    this.lockDelayMs = claim.lockDelayMs;
    this.firstToken = granted.token;
    this.tokens = granted.tokens;
    this.doubt = doubt;
    this.#driftPpm = Math.ceil(drift * 1e6);
    this.#ttlMs = claim.ttlMs;
    this.#askedTtlMs = claim.ttlMs;
    this.#lifeMs = granted.ttlMs;
    this.#since = granted.since;
    this.#validUntil = this.#endOf(granted.since, granted.ttlMs);
    this.unclaimed = granted.ttlMs < claim.ttlMs;
  }

  carry(lease: HeldLease): void {
    this.lease = lease;
    this.#terms = lease.terms;
  }

  /** Whose validity this one's is: its own, unless it is renewed in company. */
  get leader(): Grant {
    return this.company === null ? this : this.company.leader;
  }

  get since(): number {
    return this.leader.#since;
  }

  /** What the next renewal asks for. */
  get ttlMs(): number {
    return this.leader.#ttlMs;
  }

  /** Which of its tokens is in use. */
  get index(): number {
    return this.lease === null ? 0 : Number(this.lease.token - this.firstToken);
  }

  /** Whether it lives for this ttl, and no renewal under way or without an answer changes that. */
  livesFor(ttlMs: number): boolean {
    const { leader } = this;
    return leader.#ttlMs === ttlMs && leader.#askedTtlMs === ttlMs;
  }

  /** The life that validUntil was counted with; shorter than ttlMs where that is in doubt. */
  get lifeMs(): number {
    return this.leader.#lifeMs;
  }

  /** No other client can have been granted the resource before this instant. */
  get validUntil(): number {
    return this.leader.#validUntil;
  }

  /** The instant from which the holder may no longer act. */
  get lostAt(): number {
    const terms = this.#terms;
    if (terms === null) return Infinity;
    const end = this.validUntil - terms.graceMs * this.#scaleOf(terms);
    return terms.maxHoldMs === Infinity ? end : Math.min(end, this.lease!.holdUntil);
  }

  get renewEveryMs(): number {
    const terms = this.#terms;
    return terms === null ? Infinity : terms.renewEveryMs * this.#scaleOf(terms);
  }

  /** As long as a whole ttl, one call would leave no time for another try. */
  get callTimeoutMs(): number {
    return Math.min(this.#terms?.callTimeoutMs ?? Infinity, this.renewEveryMs);
  }

  get wantsRenewal(): boolean {
    const terms = this.#terms;
    if (terms === null || !(terms.renew || this.unclaimed)) return false;
    // Validity that reaches maxHoldMs needs no more renewals: that is where the keeper stops.
    return terms.maxHoldMs === Infinity || this.lostAt < this.lease!.holdUntil;
  }

  /**
   * When danger or loss comes next. In danger, a renewal is overdue, and at most one third of the life
   * is left; where renewals are so rare that this would come too late, a twentieth of it.
   */
  get watchAt(): number {
    const { lostAt, lifeMs } = this;
    if (this.inDangerTold || this.#terms?.renew !== true) return lostAt;
    const overdueAt = Math.max(lostAt - lifeMs / 3, this.since + this.renewEveryMs * 1.5);
    return Math.min(overdueAt, lostAt - lifeMs / 20);
  }

  /** Whether a lease on this grant would not be lost on arrival. */
  isGoodFor(graceMs: number, now: number): boolean {
    return this.validUntil - graceMs * Math.min(1, this.lifeMs / this.ttlMs) > now;
  }

  /** This and what follows is said of a grant that is alone, or to a leader for all. */
  confirm({ since, ttlMs }: Validity): void {
    this.#since = since;
    this.#ttlMs = ttlMs;
    this.#lifeMs = ttlMs;
    this.#validUntil = this.#endOf(since, ttlMs);
    this.failures = 0;
    this.inDangerTold = false;
    this.unclaimed = false;
  }

  /**
   * Called before a renewal is sent. One with a shorter ttl may be carried out without our ever
   * hearing of it; from then on the backend's expiry is the nearer one.
   */
  expect(since: number, ttlMs: number): void {
    this.#askedTtlMs = ttlMs;
    const end = this.#endOf(since, ttlMs);
    if (end >= this.#validUntil) return;
    this.#validUntil = end;
    this.#lifeMs = ttlMs;
  }

  /** A renewal with this ttl is about to be sent; a turn of the event loop may pass before it is. */
  willAsk(ttlMs: number): void {
    this.#askedTtlMs = ttlMs;
  }

  /** Whether it may be renewed in company: nothing about it has an instant of its own. */
  get isSociable(): boolean {
    const terms = this.#terms;
    return this.kept && terms?.renew === true && terms.maxHoldMs === Infinity && !this.askAgain;
  }

  /** Whether two that were just confirmed are good, in danger and due at the same instants by that. */
  isAkinTo(other: Grant): boolean {
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

  /** Takes over what was said to a leader, to lead in its place or to be alone from now on. */
  succeed(leader: Grant): void {
    this.#since = leader.#since;
    this.#ttlMs = leader.#ttlMs;
    this.#lifeMs = leader.#lifeMs;
    this.#validUntil = leader.#validUntil;
    this.#askedTtlMs = leader.#askedTtlMs;
    this.renewAt = leader.renewAt;
    this.failures = leader.failures;
    this.inDangerTold = leader.inDangerTold;
    this.renewing = leader.renewing;
  }

  /** A life shorter than the one that the options were checked against shrinks them alike. */
  #scaleOf({ ttlMs }: Terms): number {
    const { lifeMs } = this;
    return lifeMs < ttlMs ? lifeMs / ttlMs : 1;
  }

  #endOf(since: number, ttlMs: number): number {
    return since + ttlMs * (1 - this.#driftPpm / 1e6);
  }
}
