import type { HolderView } from "../../engine.js";
import { AcquireTimeoutError, inDoubt } from "../../errors.js";
import { emit } from "../../events.js";
import type { Terms } from "../../options.js";
import type { ClaimListener, ClaimRequest } from "../acquiring/claim-request.js";
import { PendingClaim } from "../acquiring/pending-claim.js";
import { timeoutError } from "../acquiring/timeout-error.js";
import { abandonGrant } from "../calling/release.js";
import type { Grant } from "../holding/grant.js";
import type { HeldLease } from "../holding/lease.js";
import type { LeaseController } from "../holding/lease-controller.js";
import type { Timer } from "../runtime/clock.js";
import { canHandOver, type LocalGrant, tokensFor } from "./hand-over.js";
import { LocalQueue } from "./local-queue.js";
import { type LocalHost, LocalWaiter } from "./local-waiter.js";
import type { WaitContext } from "./wait-context.js";

const NO_HOLDERS: readonly HolderView[] = [];
// Shared by all cohorts in which nobody waits; never written to.
const EMPTY = new LocalQueue();

/**
 * The waiters of one process on one resource; the word comes from the papers on lock cohorting. The
 * waiters form a local queue, and one claim competes at the backend for all of them. A released
 * lease passes to the next waiter without a round trip, within a budget. When the budget is spent,
 * the backend's queue has its turn.
 */
export class Cohort implements LeaseController, ClaimListener, LocalHost {
  /** Where this cohort is in the map of its connection. */
  readonly #key: string;
  readonly #resource: string;
  readonly #common: WaitContext;
  #waiting = EMPTY;
  #current: LocalGrant | null = null;
  #claim: PendingClaim | null = null;
  /** The waiter on whose terms the pending claim was made. */
  #leader: LocalWaiter | null = null;
  /** The pause between a failed claim and the next one. */
  #resting: Timer | null = null;
  /** The error of the last claim, until the backend answers again. */
  #failure: unknown = null;
  #holders = NO_HOLDERS;

  constructor(key: string, resource: string, common: WaitContext) {
    this.#key = key;
    this.#resource = resource;
    this.#common = common;
  }

  /** Whether this process holds the resource, claims it or has waiters for it. */
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
      const { clock } = this.#common.caller;
      const waiter = new LocalWaiter(terms, startedAt, clock, this, resolve, reject);
      if (this.#waiting === EMPTY) this.#waiting = new LocalQueue();
      this.#waiting.join(waiter);
      this.#updateClaim();
      if (!this.#isToldInTime(terms)) this.#waiting.startWaitTimers();
    });
  }

  onTimeout(waiter: LocalWaiter): void {
    const leftMs = this.#isUnanswered() ? waiter.finalAnswerMs(this.#common.caller.clock.now()) : 0;
    if (leftMs > 0) waiter.remind(leftMs);
    else this.#rejectWaiter(waiter, this.#timeoutError(waiter));
  }

  onAbort(waiter: LocalWaiter, reason: unknown): void {
    this.#rejectWaiter(waiter, reason);
  }

  /**
   * Takes over a grant that one caller obtained without waiting, so that its lease can be handed
   * over.
   */
  adopt(grant: Grant, terms: Terms, now: number): HeldLease {
    this.#current = { grant, startedAt: now, index: 0 };
    return this.#common.direct.hold(grant, 0, terms, now, this);
  }

  release(lease: HeldLease): Promise<"released" | "gone"> {
    const local = this.#currentOf(lease);
    const next = this.#waiting.first;
    if (next !== null && local !== null && this.#canHandOver(local, next)) {
      this.#handOver(local, lease, next);
      return Promise.resolve("released");
    }
    if (local !== null) this.#current = null;
    const released = this.#common.direct.release(lease);
    // The next claim follows the release on the same connection. If nobody else waits, it is
    // granted at once.
    this.#updateClaim();
    return released;
  }

  onLost(lease: HeldLease): void {
    this.#common.direct.onLost(lease);
    if (this.#currentOf(lease) !== null) this.#current = null;
    this.#updateClaim();
  }

  /** Rejects all waiters with this error; what is held stays held. */
  close(error: Error): void {
    for (const waiter of this.#waiting) {
      this.#remove(waiter);
      waiter.reject(error);
    }
    this.#updateClaim();
  }

  granted(grant: Grant, now: number): void {
    const leader = this.#clearClaim();
    this.#failure = null;
    const next = this.#waiting.first;
    // The last waiter may have left in the same tick. Or the first one needs more grace than the
    // grant has left, because it was claimed on the terms of another waiter.
    if (next === null || !grant.group.isGoodFor(next.terms.graceMs, now)) {
      abandonGrant(this.#common.caller, grant, leader.terms.callTimeoutMs);
    } else {
      this.#remove(next);
      next.serve(this.adopt(grant, next.terms, now));
    }
    this.#updateClaim();
    this.#waiting.startWaitTimers();
  }

  /**
   * Each waiter's own strategy decides whether it stays. All waiters have seen the same failure.
   */
  failed(error: unknown, claim: PendingClaim): void {
    // We ended this claim ourselves, because nobody needed it.
    if (this.#claim !== claim) return;
    const leader = this.#clearClaim();
    if (error instanceof AcquireTimeoutError) {
      // The leader's polling strategy has ended. The next leader polls by its own strategy.
      this.#rejectWaiter(leader, error);
      return;
    }
    this.#failure = error;
    const { clock } = this.#common.caller;
    const now = clock.now();
    let restMs = Infinity;
    for (const waiter of this.#waiting) {
      try {
        restMs = Math.min(restMs, waiter.delayAfter(error, now));
      } catch (reason) {
        this.#remove(waiter);
        waiter.reject(reason);
      }
    }
    if (this.#waiting.length > 0) {
      this.#waiting.startWaitTimers();
      const wake = () => {
        this.#resting = null;
        this.#updateClaim();
      };
      this.#resting = clock.timer(restMs, wake, true);
    }
    this.#updateClaim();
  }

  onHolders(holders: readonly HolderView[]): void {
    this.#failure = null;
    this.#holders = holders;
    this.#waiting.startWaitTimers();
  }

  /** Starts or ends the claim at the backend as the local waiters need it. */
  #updateClaim(): void {
    const first = this.#waiting.first;
    if (first === null) {
      this.#abortClaim();
      if (this.#current === null) this.#retire();
    } else if (this.#claim === null && this.#resting === null) {
      if (this.#current === null || !this.#canHandOver(this.#current, first))
        this.#startClaim(first);
    }
  }

  #startClaim(leader: LocalWaiter): void {
    const { budget, caller } = this.#common;
    const others = this.#waiting.length - 1 + (this.#current === null ? 0 : 1);
    const tokens = tokensFor(others, budget, caller.engine.traits.tokenRange);
    const { terms, startedAt } = leader;
    // The claim belongs to the whole cohort, so the waitMs and retry of one waiter do not end it.
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
    this.#claim = new PendingClaim(this.#common, request, this);
    this.#claim.start();
  }

  /** Ends the pending claim, because nobody waits any more. */
  #abortClaim(): void {
    const claim = this.#claim;
    this.#claim = null;
    claim?.abort(undefined);
    this.#resting?.cancel();
    this.#resting = null;
    this.#failure = null;
  }

  /** Nobody waits and nothing is held, so the connection forgets this cohort. */
  #retire(): void {
    const { cohorts } = this.#common;
    if (cohorts.get(this.#key) === this) cohorts.delete(this.#key);
  }

  /** Forgets the pending claim, which is over, and returns its leader. */
  #clearClaim(): LocalWaiter {
    const leader = this.#leader!;
    this.#claim = null;
    this.#leader = null;
    return leader;
  }

  #handOver(local: LocalGrant, from: HeldLease, next: LocalWaiter): void {
    this.#remove(next);
    const { caller, direct } = this.#common;
    const lease = direct.hold(local.grant, ++local.index, next.terms, caller.clock.now(), this);
    const waitedMs = lease.acquiredAt - next.startedAt;
    emit("handed-over", () => ({ ...lease.subject(), from: from.token, waitedMs }));
    next.serve(lease);
    this.#updateClaim();
  }

  #canHandOver(local: LocalGrant, next: LocalWaiter): boolean {
    return canHandOver(local, next.terms, this.#common.budget, this.#common.caller.clock);
  }

  /** Null when the lease uses an earlier grant. */
  #currentOf(lease: HeldLease): LocalGrant | null {
    return this.#current?.grant === lease.grant ? this.#current : null;
  }

  #localLease(): HeldLease | null {
    const lease = this.#current?.grant.lease ?? null;
    return lease?.held ? lease : null;
  }

  /**
   * Whether the pending claim has no answer yet. Nobody knows then whether the resource is held.
   */
  #isUnanswered(): boolean {
    return this.#claim?.isAnswered === false && this.#localLease() === null;
  }

  /**
   * Whether the pending claim is answered or times out before the waiter's waitMs ends. Most
   * waiters are granted by the first answer, and so need no timer.
   */
  #isToldInTime({ waitMs }: Terms): boolean {
    return this.#isUnanswered() && waitMs >= this.#leader!.terms.callTimeoutMs;
  }

  #timeoutError({ startedAt }: LocalWaiter): unknown {
    const { caller } = this.#common;
    const wait = { resource: this.#resource, startedAt };
    if (this.#localLease() !== null) return timeoutError(caller, wait, null, true, this.holders());
    // The claim that was sent after the failure may have an effect.
    const failure = this.#claim ? inDoubt(this.#failure) : this.#failure;
    const isAnswered = !this.#isUnanswered() && !this.#claim?.isSilent;
    return timeoutError(caller, wait, failure, isAnswered, this.#holders);
  }

  #rejectWaiter(waiter: LocalWaiter, error: unknown): void {
    this.#remove(waiter);
    waiter.reject(error);
    this.#updateClaim();
  }

  #remove(waiter: LocalWaiter): void {
    if (!this.#waiting.leave(waiter)) return;
    if (this.#waiting.length === 0) this.#waiting = EMPTY;
    waiter.stop();
  }
}
