import { systemClock, type Timer } from "../../../core/runtime/clock.js";
import type { GrantRef, ReleaseRef } from "../../../engine.js";
import { emit } from "../../../events.js";
import type { KeyValue } from "../client/requests.js";
import type { EndOfKey } from "../notifications/watches.js";
import type { Ahead, Member } from "../queue/queue.js";

const AGAIN_MS = 500;
const MOST_TRIES = 5;

/** Something of ours in etcd that ends unless somebody goes on asking for it. */
interface Tracked {
  readonly ref: GrantRef;
  /** On the engine's clock. */
  until: number;
  tries: number;
}

export interface Holding extends Tracked {
  readonly kind: "grant";
  self: KeyValue;
  /** Whether its key says that it holds; until then it is one that waited, and has nobody before it. */
  told: boolean;
  readonly lockDelayMs: number;
  /** The lease of its mark, where it has one. */
  marker: string | null;
  /** Whether its key was seen to be no more. */
  gone: boolean;
  /** Whether it was asked to be left: it may have been, and is then not ours to end. */
  leaving: boolean;
  /** Of the latest renewal asked for: what was asked before it comes too late. */
  order: number;
  /** Revisions of its key on which a change was built that may still come. */
  readonly doubtful: Set<string>;
}

export interface WaitingClaim extends Tracked {
  readonly kind: "waiter";
  self: KeyValue;
  /** How long it is kept without being asked after. */
  readonly graceMs: number;
  position: number;
  /** From the engine's clock to core's. */
  offsetMs: number;
  interests: readonly EndOfKey[];
  /** Who held when its place was last read, and when that was. */
  holders: readonly Member[];
  readAt: number;
  /** The key whose end is its turn, and nothing has to be asked. */
  lastBefore: Ahead | null;
  /** Whether it was to be taken away once: that may still arrive, unless its key has changed by then. */
  givenUp: boolean;
}

/** What was released without an answer: it may be there still. */
export interface Leftover extends Tracked {
  readonly kind: "leftover";
  readonly ref: ReleaseRef;
  /** The lease that it hangs on, where that is known. */
  readonly lease: string | null;
}

export type TrackedClaim = Holding | WaitingClaim | Leftover;

/**
 * What this process holds and waits for. Grants of one life share a lease, which the others keep alive;
 * so what nobody renews any more, or asks after any more, has to be taken away when its own time is over.
 */
export class Holdings {
  readonly #kept = new Map<string, TrackedClaim>();
  readonly #end: (kept: TrackedClaim) => Promise<void>;
  readonly #giveUp: (kept: TrackedClaim) => void;
  #timer: Timer | null = null;
  #wakeAt = Infinity;

  constructor(end: (kept: TrackedClaim) => Promise<void>, giveUp: (kept: TrackedClaim) => void) {
    this.#end = end;
    this.#giveUp = giveUp;
  }

  get waiters(): WaitingClaim[] {
    return [...this.#kept.values()].filter((kept) => kept.kind === "waiter");
  }

  keep(kept: TrackedClaim): void {
    this.#kept.set(kept.ref.grantId, kept);
    this.#wake(kept.until);
  }

  /** Neither held nor waited for any more. */
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

  /** The grants that end, or whose mark ends, with this lease. */
  on(lease: string): Holding[] {
    return [...this.#kept.values()].filter(
      (kept) => kept.kind === "grant" && (kept.self.lease === lease || kept.marker === lease),
    ) as Holding[];
  }

  /** Everything that something of ours hangs on. */
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

  /** A waiter that was asked after at this instant. */
  extend(waiting: WaitingClaim, at: number): void {
    waiting.until = Math.max(waiting.until, at + waiting.graceMs);
    waiting.tries = 0;
  }

  /** Gives what was forgotten. */
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

  /** Out of reach, it is tried again a few times, and then left to end with its lease. */
  #over(kept: TrackedClaim, now: number): void {
    if (kept.tries++ >= MOST_TRIES) {
      this.forget(kept.ref);
      this.#giveUp(kept);
      return;
    }
    kept.until = now + AGAIN_MS;
    this.#end(kept).then(
      () => {
        if (this.#kept.get(kept.ref.grantId) === kept) this.forget(kept.ref);
      },
      (error: unknown) =>
        emit("failed", () => ({ during: "expiry", error, resource: kept.ref.resource })),
    );
  }
}
