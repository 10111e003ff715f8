import { systemClock, type Timer } from "../../../core/runtime/clock.js";
import type { ReleaseRef, RenewRef } from "../../../engine.js";
import { emit } from "../../../events.js";

const EXPIRY_MARGIN_MS = 20;

interface SessionGrant {
  readonly resource: string;
  /** The number of the last renewal that was sent. A renewal with a smaller number is too late. */
  order: number;
  /** When the holder's lease ends, unless the grant is renewed. */
  endsAt: number;
}

/**
 * The grants of one session. The session keeps its locks alive, so a grant that is not renewed must
 * be released here at the end of its ttl.
 */
export class SessionGrants {
  readonly #byId = new Map<string, SessionGrant>();
  readonly #release: (refs: readonly ReleaseRef[], startedAt: number) => Promise<unknown>;
  #timer: Timer | null = null;
  #timerAt = Infinity;
  #closed = false;

  /** release ends grants whose ttl is over. */
  constructor(release: (refs: readonly ReleaseRef[], startedAt: number) => Promise<unknown>) {
    this.#release = release;
  }

  has(grantId: string): boolean {
    return this.#byId.has(grantId);
  }

  /** Also called for the answer to a repeated claim, which must not shorten what a renewal gave. */
  add({ resource, grantId, ttlMs }: RenewRef): void {
    const known = this.#byId.get(grantId);
    const endsAt = Math.max(known?.endsAt ?? 0, systemClock.now() + ttlMs);
    this.#byId.set(grantId, { resource, order: known?.order ?? 0, endsAt });
    if (endsAt < this.#timerAt) this.#setTimer(endsAt);
  }

  /** Called before the renewal is sent. */
  renew(grants: readonly RenewRef[], order: number): void {
    for (const { grantId, ttlMs } of grants) {
      const grant = this.#byId.get(grantId);
      if (grant === undefined || order < grant.order) continue;
      grant.order = order;
      grant.endsAt = systemClock.now() + ttlMs;
      if (grant.endsAt < this.#timerAt) this.#setTimer(grant.endsAt);
    }
  }

  delete(grantId: string): void {
    this.#byId.delete(grantId);
  }

  /** The session has ended, and its grants with it. Returns the names of their resources. */
  clear(): ReadonlySet<string> {
    const names = new Set([...this.#byId.values()].map(({ resource }) => resource));
    this.#byId.clear();
    return names;
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
  }

  #rearmTimer(): void {
    let soonest = Infinity;
    for (const { endsAt } of this.#byId.values()) soonest = Math.min(soonest, endsAt);
    this.#setTimer(soonest);
  }

  #setTimer(endsAt: number): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.#timerAt = endsAt;
    if (endsAt === Infinity || this.#closed) return;
    const delayMs = Math.max(endsAt - systemClock.now(), 0) + EXPIRY_MARGIN_MS;
    this.#timer = systemClock.timer(delayMs, () => void this.#releaseExpired(), false);
  }

  async #releaseExpired(): Promise<void> {
    this.#timer = null;
    this.#timerAt = Infinity;
    const now = systemClock.now();
    const expired = [...this.#byId].filter(([, { endsAt }]) => endsAt + EXPIRY_MARGIN_MS <= now);
    const refs = expired.map(([grantId, { resource }]) => ({ resource, grantId, tombstoneMs: 0 }));
    try {
      if (refs.length > 0) await this.#release(refs, now);
    } catch (error) {
      emit("failed", () => ({ during: "expiry", error }));
    }
    this.#rearmTimer();
  }
}
