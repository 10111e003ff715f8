import type { HolderView } from "../../engine.js";
import { AcquireTimeoutError, EngineError, inDoubt } from "../../errors.js";
import { channels, emit } from "../../events.js";
import type { Terms } from "../../options.js";
import {
  type ClaimContext,
  type ClaimListener,
  type ClaimRequest,
  PendingClaim,
} from "../acquiring/pending-claim.js";
import { abandonGrant } from "../calling/release.js";
import type { Grant } from "../holding/grant.js";
import type { HeldLease } from "../holding/lease.js";
import type { DirectController, LeaseController } from "../holding/lease-controller.js";
import type { Timer } from "../runtime/clock.js";
import { canHandOver, type HandOverBudget, type LocalTurn, tokensFor } from "./hand-over.js";
import { LocalQueue } from "./local-queue.js";
import { type LocalHost, LocalWaiter } from "./local-waiter.js";

const NO_HOLDERS: readonly HolderView[] = [];
// Of all cohorts in which nobody waits; never written to.
const EMPTY = new LocalQueue();

/** What the cohorts of one connection have in common. */
export interface CohortHome {
  readonly context: ClaimContext;
  readonly direct: DirectController;
  readonly budget: HandOverBudget;
  /** Nobody waits and nothing is held. */
  onIdle(cohort: Cohort): void;
}

/**
 * The waiters of one process on one resource; the word is that of the papers on lock cohorting. They
 * stand in a local queue, and one claim of theirs competes at the backend. A lease that is given back
 * passes to the next of them without a round trip, within a budget; then the backend's queue has its
 * turn.
 */
export class Cohort implements LeaseController, ClaimListener, LocalHost {
  /** What it is known by at home. */
  readonly key: string;
  readonly #resource: string;
  readonly #home: CohortHome;
  #waiting = EMPTY;
  #turn: LocalTurn | null = null;
  #claim: PendingClaim | null = null;
  /** On whose terms the claim under way was made. */
  #leader: LocalWaiter | null = null;
  /** Of the claim that is to follow a failed one. */
  #resting: Timer | null = null;
  /** What the last claim failed with, until the backend is heard again. */
  #failure: unknown = null;
  #holders = NO_HOLDERS;
  #closedBy: Error | null = null;

  constructor(key: string, resource: string, home: CohortHome) {
    this.key = key;
    this.#resource = resource;
    this.#home = home;
  }

  /** Whether this process already knows that the resource is taken, or has others waiting for it. */
  get taken(): boolean {
    return this.#waiting.length > 0 || this.#claim !== null || this.#localLease() !== null;
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
      const { clock } = this.#home.direct;
      const waiter = new LocalWaiter(terms, startedAt, clock, this, resolve, reject);
      if (this.#waiting === EMPTY) this.#waiting = new LocalQueue();
      this.#waiting.join(waiter);
      this.#pump();
      if (!this.#isToldInTime(terms)) this.#watchPatience();
    });
  }

  onLate(waiter: LocalWaiter): void {
    const leftMs = this.#isUnanswered() ? waiter.lastWordMs(this.#home.direct.clock.now()) : 0;
    if (leftMs > 0) waiter.remind(leftMs);
    else this.#dismiss(waiter, this.#outOfPatience(waiter));
  }

  onAbort(waiter: LocalWaiter, reason: unknown): void {
    this.#dismiss(waiter, reason);
  }

  /** A grant that one caller obtained without waiting: its lease can be passed on like any other. */
  adopt(grant: Grant, terms: Terms, now: number): HeldLease {
    if (this.#closedBy !== null) {
      abandonGrant(this.#home.context.caller, grant, terms.callTimeoutMs);
      throw this.#closedBy;
    }
    this.#turn = { grant, startedAt: now, index: 0 };
    return this.#home.direct.hold(grant, 0, terms, now, this);
  }

  release(lease: HeldLease): Promise<"released" | "gone"> {
    const turn = this.#turnOf(lease);
    const next = this.#waiting.first;
    if (next !== null && turn !== null && this.#canPassOn(turn, next)) {
      this.#passOn(turn, lease, next);
      return Promise.resolve("released");
    }
    if (turn !== null) this.#turn = null;
    const released = this.#home.direct.release(lease);
    // Right behind the release, on the same connection: if nobody else waits, it is granted at once.
    this.#pump();
    return released;
  }

  onLost(lease: HeldLease): void {
    this.#home.direct.onLost(lease);
    if (this.#turnOf(lease) !== null) this.#turn = null;
    this.#pump();
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

  granted(grant: Grant, now: number): void {
    const leader = this.#claimEnded();
    this.#failure = null;
    const next = this.#waiting.first;
    // The last waiter may have left in the same tick, or the first one need more time to stop in
    // than the grant that was made for its predecessor has left.
    if (next === null || !grant.group.isGoodFor(next.terms.graceMs, now)) {
      abandonGrant(this.#home.context.caller, grant, leader.terms.callTimeoutMs);
    } else {
      this.#remove(next);
      this.#resolve(next, this.adopt(grant, next.terms, now));
    }
    this.#pump();
    this.#watchPatience();
  }

  /** Each waiter's own strategy decides whether it stays. All have seen the same failure. */
  failed(error: unknown, claim: PendingClaim): void {
    // One that nobody needed any more was ended by ourselves.
    if (this.#claim !== claim) return;
    const leader = this.#claimEnded();
    if (error instanceof AcquireTimeoutError) {
      // The leader's strategy of looking again has ended; the next one leads with its own.
      this.#dismiss(leader, error);
      return;
    }
    this.#failure = error;
    let restMs = Infinity;
    const { clock } = this.#home.direct;
    const now = clock.now();
    for (const waiter of this.#waiting) {
      try {
        const again = error instanceof EngineError && error.retryable && !waiter.hasTimedOut(now);
        const delayMs = again ? waiter.retry.next(error) : null;
        if (delayMs === null) throw error;
        restMs = Math.min(restMs, delayMs);
      } catch (reason) {
        this.#remove(waiter);
        waiter.reject(reason);
      }
    }
    if (this.#waiting.length > 0) {
      this.#watchPatience();
      const wake = () => {
        this.#resting = null;
        this.#pump();
      };
      this.#resting = clock.timer(restMs, wake, true);
    }
    this.#pump();
  }

  heard(holders: readonly HolderView[]): void {
    this.#failure = null;
    this.#holders = holders;
    this.#watchPatience();
  }

  /** Adjusts the claim at the backend to what the local waiters need. */
  #pump(): void {
    const first = this.#waiting.first;
    if (first === null) {
      this.#endClaim();
      if (this.#turn === null) this.#home.onIdle(this);
    } else if (this.#claim === null && this.#resting === null) {
      if (this.#turn === null || !this.#canPassOn(this.#turn, first)) this.#startClaim(first);
    }
  }

  #startClaim(leader: LocalWaiter): void {
    const { budget, context } = this.#home;
    const others = this.#waiting.length - 1 + (this.#turn === null ? 0 : 1);
    const tokens = tokensFor(others, budget, context.caller.engine.traits.tokenRange);
    const { terms, startedAt } = leader;
    // The claim is the whole cohort's: one waiter's patience and retries do not end it.
    const request: ClaimRequest = {
      resource: this.#resource,
      terms,
      tokens,
      startedAt,
      waitMs: Infinity,
      retry: undefined,
      looks: terms.retry,
    };
    this.#leader = leader;
    this.#claim = new PendingClaim(context, request, this);
    this.#claim.start();
  }

  /** Nobody needs it any more. */
  #endClaim(): void {
    const claim = this.#claim;
    this.#claim = null;
    claim?.abort(undefined);
    this.#resting?.cancel();
    this.#resting = null;
    this.#failure = null;
  }

  /** The claim under way is over. Gives who led it. */
  #claimEnded(): LocalWaiter {
    const leader = this.#leader!;
    this.#claim = null;
    this.#leader = null;
    return leader;
  }

  #passOn(turn: LocalTurn, from: HeldLease, next: LocalWaiter): void {
    this.#remove(next);
    const { direct } = this.#home;
    const lease = direct.hold(turn.grant, ++turn.index, next.terms, direct.clock.now(), this);
    const waitedMs = lease.acquiredAt - next.startedAt;
    emit("handed-over", () => ({ ...lease.subject(), from: from.token, waitedMs }));
    this.#resolve(next, lease);
    this.#pump();
  }

  #resolve(waiter: LocalWaiter, lease: HeldLease): void {
    if (channels.acquired.hasSubscribers) {
      const waitedMs = lease.acquiredAt - waiter.startedAt;
      emit("acquired", () => ({ ...lease.subject(), waitedMs }));
    }
    waiter.resolve(lease);
  }

  #canPassOn(turn: LocalTurn, next: LocalWaiter): boolean {
    return canHandOver(turn, next.terms, this.#home.budget, this.#home.direct.clock);
  }

  /** Null where the lease stands on a grant of before. */
  #turnOf(lease: HeldLease): LocalTurn | null {
    return this.#turn?.grant === lease.grant ? this.#turn : null;
  }

  #localLease(): HeldLease | null {
    const lease = this.#turn?.grant.lease ?? null;
    return lease?.held ? lease : null;
  }

  /** Whether the claim under way has had no answer: then nobody knows whether anything is held. */
  #isUnanswered(): boolean {
    return this.#claim?.isAnswered === false && this.#localLease() === null;
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

  /** Silence is not busy: who does not hear from the backend is told that, and not a guess. */
  #outOfPatience({ startedAt }: LocalWaiter): unknown {
    const { caller } = this.#home.context;
    const waitedMs = caller.clock.now() - startedAt;
    if (this.#localLease() === null) {
      // A claim that was sent since may have an effect.
      if (this.#failure !== null) return this.#claim ? inDoubt(this.#failure) : this.#failure;
      if (this.#isUnanswered() || this.#claim?.isUnheard) return caller.silence(waitedMs);
    }
    return new AcquireTimeoutError(this.#resource, waitedMs, this.holders());
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
