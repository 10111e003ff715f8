import type { GrantRef } from "../../engine.js";
import { Registry } from "../../registry.js";

// A waiter sends a heartbeat at a time; a few may be under way when answers are slow.
const REMEMBERED = 8;

interface Waiter {
  readonly ref: GrantRef;
  /** When it stood in line, which counts as heartbeat number 0; null for one that we did not see. */
  readonly startedAt: number | null;
  /** When each later heartbeat was sent. */
  sent: Map<number, number> | null;
}

/** Our waiters in line, and when their heartbeats were sent. */
export class Beats {
  readonly #waiters = new Registry<string, Waiter>();

  get waiters(): GrantRef[] {
    return this.#waiters.values().map((waiter) => waiter.ref);
  }

  find(grantId: string): GrantRef | null {
    return this.#waiters.get(grantId)?.ref ?? null;
  }

  /** Gives the number of an enqueue among the heartbeats: the first has 0, a repeat the next one. */
  enter(ref: GrantRef, startedAt: number): number {
    if (this.#waiters.get(ref.grantId) !== undefined) return this.next(ref, startedAt);
    this.#waiters.add(ref.grantId, { ref, startedAt, sent: null });
    return 0;
  }

  next(ref: GrantRef, startedAt: number): number {
    const waiter = this.#waiters.get(ref.grantId) ?? this.#unseen(ref);
    waiter.sent ??= new Map();
    const beat = Math.max(0, ...waiter.sent.keys()) + 1;
    waiter.sent.set(beat, startedAt);
    for (const old of waiter.sent.keys()) {
      if (waiter.sent.size <= REMEMBERED) break;
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
    const since = (beat === 0 ? waiter?.startedAt : waiter?.sent?.get(beat)) ?? null;
    return waiter === undefined || since === null ? null : { ref: waiter.ref, since };
  }

  #unseen(ref: GrantRef): Waiter {
    const waiter: Waiter = { ref, startedAt: null, sent: null };
    this.#waiters.add(ref.grantId, waiter);
    return waiter;
  }

  forget(grantId: string): void {
    this.#waiters.delete(grantId);
  }
}
