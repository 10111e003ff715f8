import type { HolderView } from "../../engine.js";
import { EngineError } from "../../errors.js";
import type { Terms } from "../../options.js";
import type { ClaimContext, ClaimListener, ClaimRequest } from "../acquiring/claim-request.js";
import { PendingClaim } from "../acquiring/pending-claim.js";
import { timeoutError } from "../acquiring/timeout-error.js";
import type { Grant } from "../holding/grant.js";
import type { HeldLease } from "../holding/lease.js";
import { LocalQueue } from "./local-queue.js";
import { type LocalHost, LocalWaiter } from "./local-waiter.js";
import type { WaitContext } from "./wait-context.js";

/** How many claims of one queue are at the backend at once. */
export const MOST_CLAIMS = 64;

/**
 * The waiters of one process for shared grants of one resource, on equal terms. The first of them
 * have one claim each at the backend. The others follow as soon as one of those is granted, so
 * thousands of waiters cost the backend no more than a few dozen. No grant is handed over: each
 * waiter gets its own, in the order of arrival.
 *
 * The waiters that have a claim are the first in the queue, and each of them has exactly one.
 */
export class SharedQueue implements LocalHost {
  readonly #resource: string;
  readonly #common: WaitContext;
  readonly #onIdle: () => void;
  readonly #waiting = new LocalQueue<SharedWaiter>();
  readonly #claims = new Set<SharedClaim>();
  #firstUnsent: SharedWaiter | null = null;
  #holders: readonly HolderView[] = [];
  #isAnswered = false;

  constructor(resource: string, common: WaitContext, onIdle: () => void) {
    this.#resource = resource;
    this.#common = common;
    this.#onIdle = onIdle;
  }

  /** Whether the backend has answered, and so has accepted the limit of these waiters. */
  get isAnswered(): boolean {
    return this.#isAnswered;
  }

  /** Whether a waiter has no claim at the backend yet. */
  get hasUnsent(): boolean {
    return this.#firstUnsent !== null;
  }

  /** The holders as of the last heartbeat of the oldest claim, if there is one. */
  get holders(): readonly HolderView[] {
    const [oldest] = this.#claims;
    return oldest?.pending.holders ?? this.#holders;
  }

  wait(terms: Terms, startedAt: number): Promise<HeldLease> {
    return new Promise((resolve, reject) => {
      const { clock } = this.#common.caller;
      const waiter = new SharedWaiter(terms, startedAt, clock, this, resolve, reject);
      this.#waiting.join(waiter);
      this.#firstUnsent ??= waiter;
      this.#sendClaims();
      waiter.startWaitTimer();
    });
  }

  /** The first answer to a claim may be a grant, so the waiter waits a little longer for it. */
  onTimeout(waiter: SharedWaiter): void {
    const leftMs = isUnanswered(waiter) ? waiter.finalAnswerMs(this.#now()) : 0;
    if (leftMs > 0) waiter.remind(leftMs);
    else this.#rejectWaiter(waiter, this.#timeoutError(waiter));
  }

  onAbort(waiter: SharedWaiter, reason: unknown): void {
    this.#rejectWaiter(waiter, reason);
  }

  close(error: Error): void {
    for (const waiter of this.#waiting) this.#rejectWaiter(waiter, error);
  }

  onHolders(claim: SharedClaim, holders: readonly HolderView[]): void {
    this.#isAnswered = true;
    this.#holders = holders;
    const { waiter } = claim;
    if (waiter.hasTimedOut(this.#now())) this.#rejectWaiter(waiter, this.#timeoutError(waiter));
    else this.#sendClaims();
  }

  /**
   * The first waiter gets the grant, no matter which claim was granted. The claim of the first
   * waiter then passes to the waiter whose claim was granted.
   */
  granted(claim: SharedClaim, grant: Grant, now: number): void {
    this.#isAnswered = true;
    this.#claims.delete(claim);
    const first = this.#waiting.first!;
    if (first !== claim.waiter) first.claim!.backs(claim.waiter);
    this.#leave(first);
    first.serve(this.#common.direct.hold(grant, 0, first.terms, now));
    this.#sendClaims();
  }

  failed(claim: SharedClaim, error: unknown): void {
    // We ended this claim ourselves, because nobody needed it.
    if (!this.#claims.delete(claim)) return;
    const { waiter } = claim;
    waiter.claim = null;
    if (!claim.isFor(waiter)) {
      // The claim used the retries of another waiter. This waiter has its own.
      this.#send(waiter);
      return;
    }
    this.#leave(waiter);
    waiter.reject(error);
    const backendFails = error instanceof EngineError && !this.#anyAnswered();
    if (backendFails && this.#claims.size === 0) this.#failUnsent(error);
    // Send no more claims until another one is answered.
    if (!backendFails || this.#claims.size === 0) this.#sendClaims();
  }

  /**
   * The backend fails every claim. Waiters that have not sent one would have seen the same failure.
   */
  #failUnsent(error: EngineError): void {
    for (const waiter of this.#waiting) {
      if (error.retryable && waiter.terms.retry !== undefined) continue;
      this.#leave(waiter);
      waiter.reject(error);
    }
  }

  #sendClaims(): void {
    while (this.#firstUnsent !== null && this.#claims.size < MOST_CLAIMS) {
      const waiter = this.#firstUnsent;
      this.#firstUnsent = waiter.after;
      this.#send(waiter);
    }
    if (this.#waiting.length === 0) this.#onIdle();
  }

  #send(waiter: SharedWaiter): void {
    const claim = new SharedClaim(this.#resource, this.#common, this, waiter);
    this.#claims.add(claim);
    claim.pending.start();
  }

  /**
   * The claim of this waiter keeps its place at the backend, for the first waiter that has none.
   */
  #rejectWaiter(waiter: SharedWaiter, error: unknown): void {
    const { claim } = waiter;
    this.#leave(waiter);
    waiter.reject(error);
    const heir = this.#firstUnsent;
    if (claim !== null && heir !== null) {
      this.#firstUnsent = heir.after;
      claim.backs(heir);
    } else if (claim !== null) {
      this.#claims.delete(claim);
      claim.pending.abort(undefined);
    }
    this.#sendClaims();
  }

  #leave(waiter: SharedWaiter): void {
    if (this.#firstUnsent === waiter) this.#firstUnsent = waiter.after;
    this.#waiting.leave(waiter);
    waiter.claim = null;
    waiter.stop();
  }

  /** Whether the backend answers for at least one claim. */
  #anyAnswered(): boolean {
    for (const { isAnswered, pending } of this.#claims) {
      if (isAnswered && !pending.isSilent) return true;
    }
    return false;
  }

  #timeoutError(waiter: SharedWaiter): unknown {
    const wait = { resource: this.#resource, startedAt: waiter.startedAt };
    const failure = waiter.claim?.pending.failure ?? null;
    const isSilent = [...this.#claims].every(({ pending }) => pending.isSilent);
    const isAnswered = this.#isAnswered && !isSilent && !isUnanswered(waiter);
    return timeoutError(this.#common.caller, wait, failure, isAnswered, this.holders);
  }

  #now(): number {
    return this.#common.caller.clock.now();
  }
}

class SharedWaiter extends LocalWaiter {
  declare after: SharedWaiter | null;
  /** Null while the waiter has no claim at the backend. */
  claim: SharedClaim | null = null;
}

/** A claim at the backend, and the waiter for whom it keeps a place. */
class SharedClaim implements ClaimListener {
  readonly pending: PendingClaim;
  readonly #queue: SharedQueue;
  readonly #sentFor: SharedWaiter;
  #waiter: SharedWaiter;
  /** Whether the backend has answered. */
  isAnswered = false;

  constructor(resource: string, context: ClaimContext, queue: SharedQueue, waiter: SharedWaiter) {
    const { terms, startedAt } = waiter;
    // The waiter counts its own waitMs. The claim may outlast it, and then serves another waiter.
    const request: ClaimRequest = {
      ...{ resource, terms, tokens: 1, startedAt },
      ...{ waitMs: Infinity, retry: terms.retry },
    };
    this.#queue = queue;
    this.#sentFor = waiter;
    this.#waiter = waiter;
    waiter.claim = this;
    this.pending = new PendingClaim(context, request, this);
  }

  get waiter(): SharedWaiter {
    return this.#waiter;
  }

  /** Whether the claim was sent on this waiter's terms, and with its retries. */
  isFor(waiter: SharedWaiter): boolean {
    return this.#sentFor === waiter;
  }

  /** Keeps the place for this waiter from now on. */
  backs(waiter: SharedWaiter): void {
    this.#waiter = waiter;
    waiter.claim = this;
  }

  granted(grant: Grant, now: number): void {
    this.#queue.granted(this, grant, now);
  }

  failed(error: unknown): void {
    this.#queue.failed(this, error);
  }

  onHolders(holders: readonly HolderView[]): void {
    this.isAnswered = true;
    this.#queue.onHolders(this, holders);
  }
}

/** Whether the claim of this waiter was sent and has no answer yet. */
function isUnanswered({ claim }: SharedWaiter): boolean {
  return claim !== null && !claim.isAnswered;
}
