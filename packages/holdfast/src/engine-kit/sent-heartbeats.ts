import { GenerationalMap } from "../core/runtime/generational-map.js";
import type { GrantRef } from "../engine.js";

// A waiter sends one heartbeat at a time, but several may be in flight when answers are slow.
const MAX_REMEMBERED = 8;

interface Waiter {
  readonly ref: GrantRef;
  /** The number of its first heartbeat, which is usually its enqueue, and when that was sent. */
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
 * This process's waiters in the queues of a backend, and when their heartbeats were sent. A push
 * names the heartbeat after which its grant was made. The grant's validity counts from the moment
 * when that heartbeat was sent.
 */
export class SentHeartbeats {
  readonly #waiters = new GenerationalMap<string, Waiter>();
  /**
   * Counts all heartbeats of this object, from 1. A forgotten waiter may enter the queue again,
   * and a push that names one of its old heartbeats must not be dated to a newer one. So no number
   * is used twice.
   */
  #lastNumber = 0;

  get waiters(): GrantRef[] {
    return this.#waiters.values().map((waiter) => waiter.ref);
  }

  find(grantId: string): GrantRef | null {
    return this.#waiters.get(grantId)?.ref ?? null;
  }

  /**
   * For a backend whose enqueue carries no number: the enqueue gets number 0. False if the waiter
   * is known.
   */
  enqueue({ resource, grantId }: GrantRef, startedAt: number): boolean {
    // A repeated enqueue keeps the earlier instant: the first request may be the one that arrived.
    if (this.#waiters.get(grantId) !== undefined) return false;
    this.#waiters.add(grantId, { ref: { resource, grantId }, first: 0, startedAt, sent: null });
    return true;
  }

  /** Gives the number of an enqueue or heartbeat. No other heartbeat of any waiter has it. */
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
   * The waiter, and when this heartbeat of it was sent. Null if the waiter is unknown, or if the
   * heartbeat is so old that it was forgotten.
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
