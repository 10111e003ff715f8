import { GenerationalMap } from "../core/runtime/generational-map.js";
import type { GrantRef } from "../engine.js";

// A waiter sends a heartbeat at a time; a few may be under way when answers are slow.
const MAX_REMEMBERED = 8;

interface Waiter {
  readonly ref: GrantRef;
  /** The number of the first heartbeat of it that we sent, which is its enqueue as a rule; and when. */
  readonly first: number;
  readonly startedAt: number;
  /** When each later heartbeat was sent. */
  sent: Map<number, number> | null;
}

/** A heartbeat of a waiter, and when it was sent. */
export interface SentHeartbeat {
  readonly ref: GrantRef;
  readonly beat: number;
  readonly since: number;
}

/**
 * Our waiters in the queues of a backend, and when their heartbeats were sent. A push names the
 * heartbeat after which its grant was made: the grant's life counts from where that one was sent.
 */
export class SentHeartbeats {
  readonly #waiters = new GenerationalMap<string, Waiter>();
  /**
   * Of all heartbeats here, from 1: a waiter that was forgotten may stand in line again, and a push that
   * names a heartbeat of before must not be dated to one that was sent later.
   */
  #lastNumber = 0;

  get waiters(): GrantRef[] {
    return this.#waiters.values().map((waiter) => waiter.ref);
  }

  find(grantId: string): GrantRef | null {
    return this.#waiters.get(grantId)?.ref ?? null;
  }

  /** For a backend that takes no number with an enqueue: it has number 0. False for a known waiter. */
  enqueue({ resource, grantId }: GrantRef, startedAt: number): boolean {
    // A repeated enqueue keeps the earlier instant: the first one may be the one that arrived.
    if (this.#waiters.get(grantId) !== undefined) return false;
    this.#waiters.add(grantId, { ref: { resource, grantId }, first: 0, startedAt, sent: null });
    return true;
  }

  /** Gives the number of an enqueue or another heartbeat. No other has it, of this waiter or any. */
  next(ref: GrantRef, startedAt: number): number {
    const beat = ++this.#lastNumber;
    const waiter = this.#waiters.get(ref.grantId);
    if (waiter === undefined) {
      this.#waiters.add(ref.grantId, { ref, first: beat, startedAt, sent: null });
      return beat;
    }
    waiter.sent ??= new Map();
    waiter.sent.set(beat, startedAt);
    for (const old of waiter.sent.keys()) {
      if (waiter.sent.size <= MAX_REMEMBERED) break;
      waiter.sent.delete(old);
    }
    return beat;
  }

  /**
   * The waiter and when this heartbeat of it was sent; null for one we do not know, or a heartbeat too
   * long ago to count from.
   */
  at(grantId: string, beat: number): { readonly ref: GrantRef; readonly since: number } | null {
    const waiter = this.#waiters.get(grantId);
    if (waiter === undefined) return null;
    const since = beat === waiter.first ? waiter.startedAt : waiter.sent?.get(beat);
    return since === undefined ? null : { ref: waiter.ref, since };
  }

  /** The last heartbeat of each waiter. */
  latest(): SentHeartbeat[] {
    return this.#waiters.values().map(({ ref, first, startedAt, sent }) => {
      const [beat, since] = [...(sent ?? [])].at(-1) ?? [first, startedAt];
      return { ref, beat, since };
    });
  }

  forget(grantId: string): void {
    this.#waiters.delete(grantId);
  }
}
