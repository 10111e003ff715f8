import { systemClock, type Timer } from "../../../core/runtime/clock.js";
import type { GrantRef, ReleaseRef } from "../../../engine.js";
import { emit } from "../../../events.js";
import type { KeyValue } from "../client/requests.js";
import type { KeyInterest } from "../notifications/watches.js";
import type { Predecessor, QueueMember } from "../queue/queue.js";

const AGAIN_MS = 500;
const MOST_TRIES = 5;

/** A claim of ours in etcd that is ended unless it is renewed or sends heartbeats. */
interface Tracked {
  readonly ref: GrantRef;
  /** On the engine's clock. */
  until: number;
  tries: number;
}

export interface HeldGrant extends Tracked {
  readonly kind: "grant";
  self: KeyValue;
  /**
   * Whether its key says that it holds. Until then its key is that of a waiter with nobody before
   * it.
   */
  claimed: boolean;
  readonly lockDelayMs: number;
  /** The lease of its marker, if it has one. */
  marker: string | null;
  /** Whether its key is known to be deleted. */
  gone: boolean;
  /**
   * Whether a renewal asked to leave it behind. If that succeeded, this process must not end it.
   */
  leaving: boolean;
  /** The order of the latest renewal: an earlier renewal comes too late. */
  order: number;
  /** Revisions of its key on which a change is based that may still arrive. */
  readonly doubtful: Set<string>;
}

export interface WaitingClaim extends Tracked {
  readonly kind: "waiter";
  self: KeyValue;
  /** How long it is kept without a heartbeat. */
  readonly graceMs: number;
  position: number;
  /** Core's clock minus the engine's clock. */
  offsetMs: number;
  interests: readonly KeyInterest[];
  /** The holders when the queue was last read for it, and when that was. */
  holders: readonly QueueMember[];
  readAt: number;
  /** The key whose end is its turn, without asking the server. */
  lastBefore: Predecessor | null;
  /** Whether a deletion of its key was sent. It may still arrive, unless the key changes before. */
  deletionSent: boolean;
}

/** A claim whose release was not answered, so its key may still exist. */
export interface Leftover extends Tracked {
  readonly kind: "leftover";
  readonly ref: ReleaseRef;
  /** The lease of its key, if it is known. */
  readonly lease: string | null;
}

export type TrackedClaim = HeldGrant | WaitingClaim | Leftover;

interface Ends {
  /** Ends a claim at the server. */
  end(claim: TrackedClaim): Promise<void>;
  /** A claim could not be ended in many tries, so its lease must end it. */
  leaveToLease(claim: TrackedClaim): void;
}

/**
 * The claims of this process: grants, waiters and leftovers. Grants with the same ttl share a
 * lease, and the other grants keep it alive. So a claim that is no longer renewed, or sends no
 * heartbeats, must be deleted when its own time is over.
 */
export class TrackedClaims {
  readonly #byGrantId = new Map<string, TrackedClaim>();
  readonly #ends: Ends;
  #timer: Timer | null = null;
  #wakeAt = Infinity;

  constructor(ends: Ends) {
    this.#ends = ends;
  }

  get waiters(): WaitingClaim[] {
    return [...this.#byGrantId.values()].filter((claim) => claim.kind === "waiter");
  }

  track(claim: TrackedClaim): void {
    this.#byGrantId.set(claim.ref.grantId, claim);
    this.#wake(claim.until);
  }

  /** True if this process neither holds it nor waits for it. */
  isOver({ grantId }: GrantRef): boolean {
    const claim = this.#byGrantId.get(grantId);
    return claim === undefined || claim.kind === "leftover";
  }

  grant({ grantId }: GrantRef): HeldGrant | null {
    const claim = this.#byGrantId.get(grantId);
    return claim?.kind === "grant" ? claim : null;
  }

  waiter({ grantId }: GrantRef): WaitingClaim | null {
    const claim = this.#byGrantId.get(grantId);
    return claim?.kind === "waiter" ? claim : null;
  }

  /** The grants whose key or marker is on this lease. */
  on(lease: string): HeldGrant[] {
    return [...this.#byGrantId.values()].filter(
      (claim) => claim.kind === "grant" && (claim.self.lease === lease || claim.marker === lease),
    ) as HeldGrant[];
  }

  /** All leases that our claims use. */
  leases(): Set<string> {
    const all = new Set<string>();
    for (const claim of this.#byGrantId.values()) {
      if (claim.kind !== "leftover") all.add(claim.self.lease);
      if (claim.kind === "grant" && claim.marker !== null) all.add(claim.marker);
    }
    return all;
  }

  find(resource: string, created: bigint): HeldGrant | null {
    for (const claim of this.#byGrantId.values()) {
      if (claim.kind !== "grant" || claim.ref.resource !== resource) continue;
      if (claim.self.created === created) return claim;
    }
    return null;
  }

  /** Records a heartbeat of a waiter at this instant. */
  extend(waiting: WaitingClaim, at: number): void {
    waiting.until = Math.max(waiting.until, at + waiting.graceMs);
    waiting.tries = 0;
  }

  /** Removes and returns the claim. */
  forget({ grantId }: GrantRef): TrackedClaim | null {
    const claim = this.#byGrantId.get(grantId) ?? null;
    this.#byGrantId.delete(grantId);
    if (this.#byGrantId.size === 0) this.close();
    return claim;
  }

  close(): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.#wakeAt = Infinity;
  }

  #wake(at: number): void {
    if (at >= this.#wakeAt) return;
    this.#timer?.cancel();
    this.#wakeAt = at;
    this.#timer = systemClock.timer(at - systemClock.now(), () => this.#look(), false);
  }

  #look(): void {
    this.close();
    const now = systemClock.now();
    let next = Infinity;
    for (const claim of this.#byGrantId.values()) {
      if (claim.until <= now) this.#over(claim, now);
      next = Math.min(next, claim.until);
    }
    if (next < Infinity) this.#wake(next);
  }

  /**
   * Ends a claim. If etcd is unreachable it tries again a few times, then leaves it to its lease.
   */
  #over(claim: TrackedClaim, now: number): void {
    if (claim.tries++ >= MOST_TRIES) {
      this.forget(claim.ref);
      this.#ends.leaveToLease(claim);
      return;
    }
    claim.until = now + AGAIN_MS;
    this.#ends.end(claim).then(
      () => {
        if (this.#byGrantId.get(claim.ref.grantId) === claim) this.forget(claim.ref);
      },
      (error: unknown) =>
        emit("failed", () => ({ during: "expiry", error, resource: claim.ref.resource })),
    );
  }
}

/** The lease of a claim's key, if it is known. */
export function leaseOf(claim: TrackedClaim): string | null {
  return claim.kind === "leftover" ? claim.lease : claim.self.lease;
}
