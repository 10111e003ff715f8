import { systemClock, type Timer } from "../../../core/runtime/clock.js";
import type { ReleaseRef, RenewRef } from "../../../engine.js";
import { emit } from "../../../events.js";

const OVERDUE_MS = 20;

interface Holding {
  readonly resource: string;
  /** Of the last renewal that was sent: one with a smaller number comes too late. */
  order: number;
  /** When its holder no longer believes in it, unless it is renewed. */
  endsAt: number;
}

/** What one session holds. It lives on by itself, but who was not renewed must not keep others out. */
export class Holdings {
  readonly #all = new Map<string, Holding>();
  readonly #end: (refs: readonly ReleaseRef[], startedAt: number) => Promise<unknown>;
  #timer: Timer | null = null;
  #wakesFor = Infinity;
  #closed = false;

  /** end gives back those whose time is over. */
  constructor(end: (refs: readonly ReleaseRef[], startedAt: number) => Promise<unknown>) {
    this.#end = end;
  }

  has(grantId: string): boolean {
    return this.#all.has(grantId);
  }

  /** Also for the answer to a repeated claim, which takes back nothing that a renewal gave. */
  keep({ resource, grantId, ttlMs }: RenewRef): void {
    const known = this.#all.get(grantId);
    const endsAt = Math.max(known?.endsAt ?? 0, systemClock.now() + ttlMs);
    this.#all.set(grantId, { resource, order: known?.order ?? 0, endsAt });
    if (endsAt < this.#wakesFor) this.#wakeFor(endsAt);
  }

  /** Before the renewal is sent. */
  prolong(grants: readonly RenewRef[], order: number): void {
    for (const { grantId, ttlMs } of grants) {
      const holding = this.#all.get(grantId);
      if (holding === undefined || order < holding.order) continue;
      holding.order = order;
      holding.endsAt = systemClock.now() + ttlMs;
      if (holding.endsAt < this.#wakesFor) this.#wakeFor(holding.endsAt);
    }
  }

  drop(grantId: string): void {
    this.#all.delete(grantId);
  }

  /** The session is gone, and all with it. Gives the names of what it held. */
  dropAll(): ReadonlySet<string> {
    const names = new Set([...this.#all.values()].map(({ resource }) => resource));
    this.#all.clear();
    return names;
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
  }

  #wake(): void {
    let soonest = Infinity;
    for (const { endsAt } of this.#all.values()) soonest = Math.min(soonest, endsAt);
    this.#wakeFor(soonest);
  }

  #wakeFor(endsAt: number): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.#wakesFor = endsAt;
    if (endsAt === Infinity || this.#closed) return;
    const delayMs = Math.max(endsAt - systemClock.now(), 0) + OVERDUE_MS;
    this.#timer = systemClock.timer(delayMs, () => void this.#endOverdue(), false);
  }

  async #endOverdue(): Promise<void> {
    this.#timer = null;
    this.#wakesFor = Infinity;
    const now = systemClock.now();
    const overdue = [...this.#all].filter(([, { endsAt }]) => endsAt + OVERDUE_MS <= now);
    const refs = overdue.map(([grantId, { resource }]) => ({ resource, grantId, tombstoneMs: 0 }));
    try {
      if (refs.length > 0) await this.#end(refs, now);
    } catch (error) {
      emit("failed", () => ({ during: "expiry", error }));
    }
    this.#wake();
  }
}
