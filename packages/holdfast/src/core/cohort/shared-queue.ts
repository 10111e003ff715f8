import type { HolderView } from "../../engine.js";
import { AcquireTimeoutError, EngineError } from "../../errors.js";
import { emit } from "../../events.js";
import type { Terms } from "../../options.js";
import {
  type ClaimContext,
  type ClaimListener,
  type ClaimRequest,
  PendingClaim,
} from "../acquiring/pending-claim.js";
import type { Grant } from "../holding/grant.js";
import type { HeldLease } from "../holding/lease.js";
import type { DirectController } from "../holding/lease-controller.js";
import { LocalQueue } from "./local-queue.js";
import { type LocalHost, LocalWaiter } from "./local-waiter.js";

/** So many claims of one queue stand at the backend at once. */
export const MOST_CLAIMS = 64;

/** What the shared queues of one connection have in common. */
export interface SharedHome {
  readonly context: ClaimContext;
  readonly direct: DirectController;
}

/**
 * The waiters of one process for shared grants of one resource, on equal terms. The first of them have
 * a claim each at the backend; the others follow as soon as one of those is granted, so that thousands
 * of waiters cost the backend no more than a few dozen. No grant is passed on: each waiter gets one of
 * its own, in the order in which the waiters came.
 *
 * Those who have a claim are the first in the queue, and each of them has exactly one.
 */
export class SharedQueue implements LocalHost {
  readonly #resource: string;
  readonly #home: SharedHome;
  readonly #onIdle: () => void;
  readonly #waiting = new LocalQueue<SharedWaiter>();
  readonly #claims = new Set<SharedClaim>();
  #firstUnsent: SharedWaiter | null = null;
  #holders: readonly HolderView[] = [];
  #isHeard = false;

  constructor(resource: string, home: SharedHome, onIdle: () => void) {
    this.#resource = resource;
    this.#home = home;
    this.#onIdle = onIdle;
  }

  /** Whether the backend has answered, and so has accepted the limit of these waiters. */
  get isHeard(): boolean {
    return this.#isHeard;
  }

  /** Whether anybody waits here of whom the backend does not know. */
  get hasUnsent(): boolean {
    return this.#firstUnsent !== null;
  }

  /** As of the last heartbeat of the oldest claim, where there is one. */
  get holders(): readonly HolderView[] {
    const [oldest] = this.#claims;
    return oldest?.contention.holders ?? this.#holders;
  }

  wait(terms: Terms, startedAt: number): Promise<HeldLease> {
    return new Promise((resolve, reject) => {
      const { clock } = this.#home.context.caller;
      const waiter = new SharedWaiter(terms, startedAt, clock, this, resolve, reject);
      this.#waiting.join(waiter);
      this.#firstUnsent ??= waiter;
      this.#fill();
      waiter.watchPatience();
    });
  }

  /** A claim may be granted by its first answer: that one is waited for a moment longer. */
  onLate(waiter: SharedWaiter): void {
    const leftMs = isUnanswered(waiter) ? waiter.lastWordMs(this.#now()) : 0;
    if (leftMs > 0) waiter.remind(leftMs);
    else this.#dismiss(waiter, this.#outOfPatience(waiter));
  }

  onAbort(waiter: SharedWaiter, reason: unknown): void {
    this.#dismiss(waiter, reason);
  }

  close(error: Error): void {
    for (const waiter of this.#waiting) this.#dismiss(waiter, error);
  }

  heard(claim: SharedClaim, holders: readonly HolderView[]): void {
    this.#isHeard = true;
    this.#holders = holders;
    const { waiter } = claim;
    if (waiter.hasTimedOut(this.#now())) this.#dismiss(waiter, this.#outOfPatience(waiter));
    else this.#fill();
  }

  /** The first in the queue gets the grant, whoever it was claimed for, and leaves its own claim to that one. */
  granted(claim: SharedClaim, grant: Grant, now: number): void {
    this.#isHeard = true;
    this.#claims.delete(claim);
    const first = this.#waiting.first!;
    if (first !== claim.waiter) first.claim!.backs(claim.waiter);
    this.#leave(first);
    const { terms, startedAt } = first;
    const lease = this.#home.direct.hold(grant, 0, terms, now);
    emit("acquired", () => ({ ...lease.subject(), waitedMs: now - startedAt }));
    first.resolve(lease);
    this.#fill();
  }

  failed(claim: SharedClaim, error: unknown): void {
    // One that nobody needed any more was ended by ourselves.
    if (!this.#claims.delete(claim)) return;
    const { waiter } = claim;
    waiter.claim = null;
    if (!claim.isFor(waiter)) {
      // The retries were those of another waiter. This one has its own.
      this.#send(waiter);
      return;
    }
    this.#leave(waiter);
    waiter.reject(error);
    const backendFails = error instanceof EngineError && !this.#isAnswered();
    if (backendFails && this.#claims.size === 0) this.#failUnsent(error);
    // Until another claim is answered, it is not worth sending more of them.
    if (!backendFails || this.#claims.size === 0) this.#fill();
  }

  /** The backend fails every claim. Who has not sent one yet would have seen the same by now. */
  #failUnsent(error: EngineError): void {
    for (const waiter of this.#waiting) {
      if (error.retryable && waiter.terms.retry !== undefined) continue;
      this.#leave(waiter);
      waiter.reject(error);
    }
  }

  #fill(): void {
    while (this.#firstUnsent !== null && this.#claims.size < MOST_CLAIMS) {
      const waiter = this.#firstUnsent;
      this.#firstUnsent = waiter.after;
      this.#send(waiter);
    }
    if (this.#waiting.length === 0) this.#onIdle();
  }

  #send(waiter: SharedWaiter): void {
    const claim = new SharedClaim(this.#resource, this.#home.context, this, waiter);
    this.#claims.add(claim);
    claim.contention.start();
  }

  /** Its claim keeps its place at the backend for the first who has none. */
  #dismiss(waiter: SharedWaiter, error: unknown): void {
    const { claim } = waiter;
    this.#leave(waiter);
    waiter.reject(error);
    const heir = this.#firstUnsent;
    if (claim !== null && heir !== null) {
      this.#firstUnsent = heir.after;
      claim.backs(heir);
    } else if (claim !== null) {
      this.#claims.delete(claim);
      claim.contention.abort(undefined);
    }
    this.#fill();
  }

  #leave(waiter: SharedWaiter): void {
    if (this.#firstUnsent === waiter) this.#firstUnsent = waiter.after;
    this.#waiting.leave(waiter);
    waiter.claim = null;
    waiter.stop();
  }

  /** Whether the backend answers for any of the claims. */
  #isAnswered(): boolean {
    for (const { isHeard, contention } of this.#claims) {
      if (isHeard && !contention.isUnheard) return true;
    }
    return false;
  }

  /** Silence is not busy: who never heard from the backend is told that, and not a guess. */
  #outOfPatience(waiter: SharedWaiter): unknown {
    const failure = waiter.claim?.contention.failure ?? null;
    if (failure !== null) return failure;
    const waitedMs = this.#now() - waiter.startedAt;
    const silent = [...this.#claims].every(({ contention }) => contention.isUnheard);
    if (!this.#isHeard || silent || isUnanswered(waiter))
      return this.#home.context.caller.silence(waitedMs);
    return new AcquireTimeoutError(this.#resource, waitedMs, this.holders);
  }

  #now(): number {
    return this.#home.context.caller.clock.now();
  }
}

class SharedWaiter extends LocalWaiter {
  declare after: SharedWaiter | null;
  /** Null while the backend does not know of it. */
  claim: SharedClaim | null = null;
}

/** A claim at the backend, and the waiter that it keeps a place for. */
class SharedClaim implements ClaimListener {
  readonly contention: PendingClaim;
  readonly #queue: SharedQueue;
  readonly #sentFor: SharedWaiter;
  #waiter: SharedWaiter;
  /** Whether the backend has answered. */
  isHeard = false;

  constructor(resource: string, context: ClaimContext, queue: SharedQueue, waiter: SharedWaiter) {
    const { terms, startedAt } = waiter;
    // Patience is the waiter's own: the claim may outlast it, for somebody else.
    const request: ClaimRequest = {
      ...{ resource, terms, tokens: 1, startedAt },
      ...{ waitMs: Infinity, retry: terms.retry },
    };
    this.#queue = queue;
    this.#sentFor = waiter;
    this.#waiter = waiter;
    waiter.claim = this;
    this.contention = new PendingClaim(context, request, this);
  }

  get waiter(): SharedWaiter {
    return this.#waiter;
  }

  /** Whether it was sent on this waiter's terms, and with its retries. */
  isFor(waiter: SharedWaiter): boolean {
    return this.#sentFor === waiter;
  }

  /** From now on it keeps its place for this waiter. */
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

  heard(holders: readonly HolderView[]): void {
    this.isHeard = true;
    this.#queue.heard(this, holders);
  }
}

/** Whether its claim was sent and has not been answered. */
function isUnanswered({ claim }: SharedWaiter): boolean {
  return claim !== null && !claim.isHeard;
}
