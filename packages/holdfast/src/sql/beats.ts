import type { GrantRef } from "../engine.js";

// A waiter sends a heartbeat at a time; a few may be under way when answers are slow.
const REMEMBERED = 8;

interface Waiter {
  readonly ref: GrantRef;
  /** When each numbered heartbeat was sent. Standing in line is number 0. */
  readonly sent: Map<number, number>;
}

/** Our waiters in line, and when their heartbeats were sent. */
export class Beats {
  readonly #waiters = new Map<string, Waiter>();

  get waiters(): GrantRef[] {
    return [...this.#waiters.values()].map((waiter) => waiter.ref);
  }

  find(grantId: string): GrantRef | null {
    return this.#waiters.get(grantId)?.ref ?? null;
  }

  /** False for one that is known. */
  start({ resource, grantId }: GrantRef, startedAt: number): boolean {
    // A repeated enqueue keeps the earlier instant: the first one may be the one that arrived.
    if (this.#waiters.has(grantId)) return false;
    this.#waiters.set(grantId, { ref: { resource, grantId }, sent: new Map([[0, startedAt]]) });
    return true;
  }

  next(ref: GrantRef, startedAt: number): number {
    const waiter = this.#waiters.get(ref.grantId) ?? { ref, sent: new Map<number, number>() };
    this.#waiters.set(ref.grantId, waiter);
    const beat = Math.max(0, ...waiter.sent.keys()) + 1;
    waiter.sent.set(beat, startedAt);
    for (const old of waiter.sent.keys()) {
      if (waiter.sent.size <= REMEMBERED) break;
      waiter.sent.delete(old);
    }
    return beat;
  }

  /** The last heartbeat of each waiter, and when it was sent. */
  latest(): { name: string; id: string; beat: number; since: number }[] {
    return [...this.#waiters.values()].map(({ ref, sent }) => {
      const beat = Math.max(...sent.keys());
      return { name: ref.resource, id: ref.grantId, beat, since: sent.get(beat)! };
    });
  }

  /** Null for a waiter we do not know, or a heartbeat too long ago to count from. */
  since(grantId: string, beat: number): number | null {
    return this.#waiters.get(grantId)?.sent.get(beat) ?? null;
  }

  forget(grantId: string): void {
    this.#waiters.delete(grantId);
  }
}
