import { type Arena, type Claimant, Contention, type Wish } from "./acquire.js";
import type { Timer } from "./clock.js";
import type { HolderView } from "./engine.js";
import { AcquireTimeoutError, EngineError, inDoubt, invariant } from "./errors.js";
import { channels, emit } from "./events.js";
import type { Grant } from "./grant.js";
import type { Keeper } from "./keeper.js";
import { type Custody, HeldLease } from "./lease.js";
import { LocalLine } from "./local-line.js";
import { type LocalHost, LocalWaiter } from "./local-waiter.js";
import type { Terms } from "./options.js";

// One that waits again right after its turn is served many times in one grant. A range that is not
// used up costs nothing but numbers.
export const TOKENS_PER_WAITER = 32;

const NONE: readonly HolderView[] = [];
// Of all cohorts in which nobody waits; never written to.
const EMPTY = new LocalLine();

export interface CohortTerms {
  readonly handOvers: number;
  readonly handOverMs: number;
  /** How many tokens to reserve for each waiter. */
  readonly tokensPerWaiter: number;
}

/** What the cohorts of one connection, or of one strict line, have in common. */
export interface CohortHome {
  readonly arena: Arena;
  readonly keeper: Keeper;
  /** Of a lease that is not passed on. */
  readonly sole: Custody;
  readonly budget: CohortTerms;
  /** Nobody waits and nothing is held. */
  onIdle(cohort: Cohort): void;
}

/**
 * The waiters of one process on one resource. They stand in a local line, and one claim of theirs
 * competes at the backend. A lease that is given back passes to the next of them without a round
 * trip, within a budget; then the backend's line has its turn.
 */
export class Cohort implements Custody, Claimant, LocalHost {
  /** What it is known by at home. */
  readonly key: string;
  readonly #resource: string;
  readonly #home: CohortHome;
  #waiting = EMPTY;
  #grant: Grant | null = null;
  #index = 0;
  #turnStartedAt = 0;
  #claiming: Contention | null = null;
  /** Whose terms the claim under way has. */
  #leader: LocalWaiter | null = null;
  #resting: Timer | null = null;
  #holders: readonly HolderView[] = NONE;
  // Whether the backend has said anything to the claim under way.
  #heard = false;
  /** What the last claim failed with, until the backend is heard again. */
  #failure: unknown = null;
  #closedBy: Error | null = null;
  // Whether it keeps its claim to itself for now.
  #isShut = false;

  constructor(key: string, resource: string, home: CohortHome) {
    this.key = key;
    this.#resource = resource;
    this.#home = home;
  }

  /** Whether this process already knows that the resource is taken, or has others waiting for it. */
  get taken(): boolean {
    return this.#waiting.length > 0 || this.#claiming !== null || this.#localLease() !== null;
  }

  holders(): readonly HolderView[] {
    const lease = this.#localLease();
    if (lease === null) return this.#holders;
    const { mode, token, label } = lease;
    return [{ mode, token, label, remainingMs: lease.remainingMs(), revoked: false }];
  }

  wait(terms: Terms, startedAt: number): Promise<HeldLease> {
    return new Promise((resolve, reject) => {
      if (terms.signal?.aborted) return reject(terms.signal.reason);
      const { clock } = this.#home.arena.backend;
      const waiter = new LocalWaiter(terms, startedAt, clock, this, resolve, reject);
      if (this.#waiting === EMPTY) this.#waiting = new LocalLine();
      this.#waiting.join(waiter);
      this.#pump();
      if (!this.#isShut && !this.#isToldInTime(terms)) this.#watchPatience();
    });
  }

  onLate(waiter: LocalWaiter): void {
    const { clock } = this.#home.arena.backend;
    const leftMs = this.#isUnanswered() ? waiter.lastWordMs(clock.now()) : 0;
    if (leftMs > 0) waiter.remind(leftMs);
    else this.#dismiss(waiter, this.#outOfPatience(waiter));
  }

  onAbort(waiter: LocalWaiter, reason: unknown): void {
    this.#dismiss(waiter, reason);
  }

  /** Claims nothing until it is opened. */
  shut(): void {
    this.#isShut = true;
  }

  open(): void {
    this.#isShut = false;
    this.#pump();
    this.#watchPatience();
  }

  /** A grant that one caller obtained without waiting: its lease can be passed on like any other. */
  adopt(grant: Grant, terms: Terms, now: number): HeldLease {
    if (this.#closedBy !== null) {
      this.#home.arena.backend.abandonGrant(grant, terms.callTimeoutMs);
      throw this.#closedBy;
    }
    this.#grant = grant;
    this.#index = 0;
    this.#turnStartedAt = now;
    return this.#lease(grant, terms, now);
  }

  renew(lease: HeldLease, ttlMs: number | undefined): Promise<void> {
    return this.#home.sole.renew(lease, ttlMs);
  }

  giveBack(lease: HeldLease): Promise<"released" | "gone"> {
    const next = this.#waiting.first;
    if (next !== null && lease.grant === this.#grant && this.#canPassOn(next)) {
      this.#passOn(lease, next);
      return Promise.resolve("released");
    }
    if (lease.grant === this.#grant) this.#grant = null;
    const released = this.#home.sole.giveBack(lease);
    // Right behind the release, on the same connection: if nobody else waits, it is granted at once.
    this.#pump();
    return released;
  }

  onLost(lease: HeldLease): void {
    this.#home.sole.onLost(lease);
    if (lease.grant === this.#grant) this.#grant = null;
    this.#pump();
  }

  leave(): never {
    invariant(false, "only leases that nobody renews are left, and a cohort has none");
  }

  giveUp(lease: HeldLease): void {
    this.#home.sole.giveUp(lease);
  }

  /** Ends all waiting with this error; what is held stays held. */
  close(error: Error): void {
    this.#closedBy = error;
    for (const waiter of this.#waiting) {
      this.#remove(waiter);
      waiter.reject(error);
    }
    this.#pump();
  }

  /** Brings the claim at the backend in line with what the local waiters need. */
  #pump(): void {
    if (this.#waiting.length === 0) {
      const claim = this.#claiming;
      this.#claiming = null;
      claim?.abort(undefined);
      this.#resting?.cancel();
      this.#resting = null;
      if (this.#grant === null) this.#home.onIdle(this);
    } else if (this.#claiming === null && this.#resting === null && !this.#isShut) {
      const first = this.#waiting.first!;
      if (!this.#canPassOn(first)) this.#claim(first);
    }
  }

  #claim(leader: LocalWaiter): void {
    const { terms, startedAt } = leader;
    const wish: Wish = {
      resource: this.#resource,
      // The claim is the whole cohort's: one waiter's patience and retries do not end it.
      terms,
      retry: undefined,
      looks: terms.retry,
      tokens: this.#tokens(),
      startedAt,
      waitMs: Infinity,
    };
    this.#leader = leader;
    this.#heard = false;
    this.#claiming = new Contention(this.#home.arena, wish, this);
    this.#claiming.start();
  }

  failed(error: unknown, claim: Contention): void {
    // One that nobody wanted any more was ended by ourselves.
    if (this.#claiming !== claim) return;
    this.#claimFailed(error, this.#ended());
    this.#pump();
  }

  /** The claim under way is over. Gives who led it. */
  #ended(): LocalWaiter {
    const leader = this.#leader!;
    this.#claiming = null;
    this.#leader = null;
    return leader;
  }

  heard(holders: readonly HolderView[]): void {
    this.#heard = true;
    this.#failure = null;
    this.#holders = holders;
    this.#watchPatience();
  }

  /** Whether the claim under way has had no answer: then nobody knows whether anything is held. */
  #isUnanswered(): boolean {
    if (this.#isShut) return true;
    return this.#claiming !== null && !this.#heard && this.#localLease() === null;
  }

  /**
   * Whether a waiter hears of the claim under way before its patience ends: from the backend, or from
   * the call's own limit. So most waiters, who are granted by the first answer, need no timer.
   */
  #isToldInTime({ waitMs }: Terms): boolean {
    return this.#isUnanswered() && waitMs >= this.#leader!.terms.callTimeoutMs;
  }

  /** Who came before the last one that is watched is watched as well, so nobody is looked at twice. */
  #watchPatience(): void {
    for (let one = this.#waiting.last; one !== null && !one.isWatched; one = one.before) {
      one.watchPatience();
    }
  }

  granted(grant: Grant, now: number): void {
    const leader = this.#ended();
    this.#failure = null;
    const next = this.#waiting.first;
    const { backend } = this.#home.arena;
    // The last waiter may have left in the same tick, or the first one need more time to stop in
    // than the grant that was made for its predecessor has left.
    if (next === null || !grant.isGoodFor(next.terms.graceMs, now)) {
      backend.abandonGrant(grant, leader.terms.callTimeoutMs);
      this.#pump();
      this.#watchPatience();
      return;
    }
    this.#remove(next);
    const lease = this.adopt(grant, next.terms, now);
    this.#announce(lease, next);
    next.resolve(lease);
    this.#pump();
    this.#watchPatience();
  }

  /** Each waiter's own strategy decides whether it stays. All have seen the same failure. */
  #claimFailed(error: unknown, leader: LocalWaiter): void {
    if (error instanceof AcquireTimeoutError) {
      // The leader's strategy of looking again has ended; the next one leads with its own.
      this.#remove(leader);
      leader.reject(error);
      return;
    }
    this.#failure = error;
    let restMs = Infinity;
    const now = this.#home.arena.backend.clock.now();
    for (const waiter of this.#waiting) {
      try {
        const again = error instanceof EngineError && error.retryable && !waiter.isLate(now);
        const delayMs = again ? waiter.retry.next(error) : null;
        if (delayMs === null) throw error;
        restMs = Math.min(restMs, delayMs);
      } catch (reason) {
        this.#remove(waiter);
        waiter.reject(reason);
      }
    }
    if (this.#waiting.length === 0) {
      this.#failure = null;
      return;
    }
    this.#watchPatience();
    const wake = () => {
      this.#resting = null;
      this.#pump();
    };
    this.#resting = this.#home.arena.backend.clock.timer(restMs, wake, true);
  }

  #passOn(from: HeldLease, next: LocalWaiter): void {
    this.#remove(next);
    this.#index++;
    const lease = this.#lease(from.grant, next.terms, this.#home.arena.backend.clock.now());
    const waitedMs = lease.acquiredAt - next.startedAt;
    emit("handed-over", () => ({ ...lease.subject(), from: from.token, waitedMs }));
    this.#announce(lease, next);
    next.resolve(lease);
    this.#pump();
  }

  #announce(lease: HeldLease, waiter: LocalWaiter): void {
    if (!channels.acquired.hasSubscribers) return;
    const waitedMs = lease.acquiredAt - waiter.startedAt;
    emit("acquired", () => ({ ...lease.subject(), waitedMs }));
  }

  #lease(grant: Grant, terms: Terms, now: number): HeldLease {
    const lease = new HeldLease(
      grant,
      this.#index,
      terms,
      this.#home.arena.backend.clock,
      this,
      now,
    );
    this.#home.keeper.add(grant);
    return lease;
  }

  /**
   * Validity is looked at on every pass: a third of the next one's usable life must be left, and it
   * must be the life that the next one asked for, or it is better served by a grant of its own.
   */
  #canPassOn(next: LocalWaiter): boolean {
    const grant = this.#grant;
    if (grant === null || this.#index + 1 >= grant.tokens) return false;
    // A renewal that is under way for another ttl would be the next one's, once it is answered.
    if (this.#index >= this.#home.budget.handOvers || !grant.livesFor(next.terms.ttlMs))
      return false;
    const now = this.#home.arena.backend.clock.now();
    if (now - this.#turnStartedAt >= this.#home.budget.handOverMs) return false;
    // A grant that was pushed, and whose first renewal is under way, lives shorter by this factor.
    const graceMs = next.terms.graceMs * Math.min(1, grant.lifeMs / grant.ttlMs);
    return grant.validUntil - graceMs - now > (grant.lifeMs - graceMs) / 3;
  }

  /** Silence is not busy: who does not hear from the backend is told that, and not a guess. */
  #outOfPatience({ startedAt }: LocalWaiter): unknown {
    const { backend } = this.#home.arena;
    const waitedMs = backend.clock.now() - startedAt;
    if (this.#localLease() === null) {
      // A claim that was sent since may have an effect.
      if (this.#failure !== null) return this.#claiming ? inDoubt(this.#failure) : this.#failure;
      if (this.#isUnanswered() || this.#claiming?.isUnheard) return backend.silence(waitedMs);
    }
    return new AcquireTimeoutError(this.#resource, waitedMs, this.holders());
  }

  #tokens(): number {
    const others = this.#waiting.length - 1 + (this.#grant === null ? 0 : 1);
    const { tokenRange } = this.#home.arena.backend.engine.traits;
    const { handOvers, tokensPerWaiter } = this.#home.budget;
    return Math.min(tokenRange, handOvers + 1, 1 + tokensPerWaiter * others);
  }

  #localLease(): HeldLease | null {
    const lease = this.#grant?.lease ?? null;
    return lease?.held ? lease : null;
  }

  #dismiss(waiter: LocalWaiter, error: unknown): void {
    this.#remove(waiter);
    waiter.reject(error);
    this.#pump();
  }

  #remove(waiter: LocalWaiter): void {
    if (!this.#waiting.leave(waiter)) return;
    if (this.#waiting.length === 0) this.#waiting = EMPTY;
    waiter.stop();
  }
}
