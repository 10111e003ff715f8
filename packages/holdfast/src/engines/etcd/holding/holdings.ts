import { systemClock, type Timer } from "../../../core/runtime/clock.js";
import type { GrantRef, ReleaseRef } from "../../../engine.js";
import { emit } from "../../../events.js";
import type { KeyValue } from "../client/requests.js";
import type { EndOfKey } from "../notifications/watches.js";
import type { Ahead, Member } from "../queue/queue.js";

const AGAIN_MS = 500;
const MOST_TRIES = 5;

/** A claim of ours in etcd that is ended unless it is renewed or sends heartbeats. */
interface Tracked {
  readonly ref: GrantRef;
  /** On the engine's clock. */
  until: number;
  tries: number;
}

export interface Holding extends Tracked {
  readonly kind: "grant";
  self: KeyValue;
  /** Whether its key says that it holds. Until then its key is that of a waiter with nobody before it. */
  told: boolean;
  readonly lockDelayMs: number;
  /** The lease of its mark, if it has one. */
  marker: string | null;
  /** Whether its key is known to be deleted. */
  gone: boolean;
  /** Whether a renewal asked to leave it behind. If that succeeded, this process must not end it. */
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
  interests: readonly EndOfKey[];
  /** The holders when the queue was last read for it, and when that was. */
  holders: readonly Member[];
  readAt: number;
  /** The key whose end is its turn, without asking the server. */
  lastBefore: Ahead | null;
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

export type TrackedClaim = Holding | WaitingClaim | Leftover;

interface Ends {
  /** Ends a claim at the server. */
  end(kept: TrackedClaim): Promise<void>;
  /** A claim could not be ended in many tries, so its lease must end it. */
  leaveToLease(kept: TrackedClaim): void;
}

/**
 * What this process holds and waits for. Grants with the same ttl share a lease, and the other grants
 * keep it alive. So a claim that is no longer renewed, or sends no heartbeats, must be deleted when its
 * own time is over.
 */
export class Holdings {
  readonly #kept = new Map<string, TrackedClaim>();
  readonly #ends: Ends;
  #timer: Timer | null = null;
  #wakeAt = Infinity;

  constructor(ends: Ends) {
    this.#ends = ends;
  }

  get waiters(): WaitingClaim[] {
    return [...this.#kept.values()].filter((kept) => kept.kind === "waiter");
  }

  keep(kept: TrackedClaim): void {
    this.#kept.set(kept.ref.grantId, kept);
    this.#wake(kept.until);
  }

  /** True if this process neither holds it nor waits for it. */
  isOver({ grantId }: GrantRef): boolean {
    const kept = this.#kept.get(grantId);
    return kept === undefined || kept.kind === "leftover";
  }

  grant({ grantId }: GrantRef): Holding | null {
    const kept = this.#kept.get(grantId);
    return kept?.kind === "grant" ? kept : null;
  }

  waiter({ grantId }: GrantRef): WaitingClaim | null {
    const kept = this.#kept.get(grantId);
    return kept?.kind === "waiter" ? kept : null;
  }

  /** The grants whose key or mark is on this lease. */
  on(lease: string): Holding[] {
    return [...this.#kept.values()].filter(
      (kept) => kept.kind === "grant" && (kept.self.lease === lease || kept.marker === lease),
    ) as Holding[];
  }

  /** All leases that our claims use. */
  leases(): Set<string> {
    const all = new Set<string>();
    for (const kept of this.#kept.values()) {
      if (kept.kind !== "leftover") all.add(kept.self.lease);
      if (kept.kind === "grant" && kept.marker !== null) all.add(kept.marker);
    }
    return all;
  }

  find(resource: string, created: bigint): Holding | null {
    for (const kept of this.#kept.values()) {
      if (kept.kind !== "grant" || kept.ref.resource !== resource) continue;
      if (kept.self.created === created) return kept;
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
    const kept = this.#kept.get(grantId) ?? null;
    this.#kept.delete(grantId);
    if (this.#kept.size === 0) this.close();
    return kept;
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
    for (const kept of this.#kept.values()) {
      if (kept.until <= now) this.#over(kept, now);
      next = Math.min(next, kept.until);
    }
    if (next < Infinity) this.#wake(next);
  }

  /** Ends a claim. If etcd is unreachable it tries again a few times, then leaves it to its lease. */
  #over(kept: TrackedClaim, now: number): void {
    if (kept.tries++ >= MOST_TRIES) {
      this.forget(kept.ref);
      this.#ends.leaveToLease(kept);
      return;
    }
    kept.until = now + AGAIN_MS;
    this.#ends.end(kept).then(
      () => {
        if (this.#kept.get(kept.ref.grantId) === kept) this.forget(kept.ref);
      },
      (error: unknown) =>
        emit("failed", () => ({ during: "expiry", error, resource: kept.ref.resource })),
    );
  }
}

/** The lease of a claim's key, if it is known. */
export function leaseOf(kept: TrackedClaim): string | null {
  return kept.kind === "leftover" ? kept.lease : kept.self.lease;
}
