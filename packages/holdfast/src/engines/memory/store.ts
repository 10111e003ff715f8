import type { Claim, HolderView, Mode, ResourceView } from "../../engine.js";
import { limitMismatch } from "../../errors.js";

/** A grant as the store keeps it. It blocks others until its lock-delay is over, too. */
export interface Holding {
  readonly claim: Claim;
  readonly token: bigint;
  /** From when the life counts, and for how long; renewals move both. */
  since: number;
  ttlMs: number;
  expiresAt: number;
  /** Of the latest renewal: one with a smaller number comes too late. */
  order: number;
  /** Which of its tokens is in use. */
  index: number;
  /** Its holder has gone and left it to time. */
  left: boolean;
  revoked: boolean;
}

export interface Waiting {
  readonly claim: Claim;
  /** Tells the waiter's engine. */
  readonly push: (holding: Holding, since: number) => void;
}

interface Room {
  readonly holdings: Map<string, Holding>;
  /** First come, first served; a waiter is eligible only if everyone before it is. */
  readonly line: Waiting[];
}

/** What memory engines share: hand the same store to several, and they contend with each other. */
export class MemoryStore {
  readonly rooms = new Map<string, Room>();
  readonly changed = new Set<(resource: string) => void>();
  readonly #tombstones = new Map<string, number>();
  #nextToken = 1n;
  #latest = -Infinity;

  /** Time as the store knows it: that of the latest call, and never less. */
  instant(startedAt: number): number {
    this.#latest = Math.max(this.#latest, startedAt);
    return this.#latest;
  }

  /** The holding after everything that time has ended is gone; null if it is not alive. */
  alive(resource: string, grantId: string, now: number): Holding | null {
    this.settle(resource, now);
    const holding = this.rooms.get(resource)?.holdings.get(grantId);
    return holding !== undefined && holding.expiresAt > now ? holding : null;
  }

  /** Grants if nobody is in the way and nobody waits. */
  tryGrant(claim: Claim, now: number): Holding | null {
    this.settle(claim.resource, now);
    const room = this.#room(claim.resource);
    this.#refuseOtherLimit(room, claim);
    const holding =
      room.line.length === 0 && fits(room, claim) ? this.#grant(room, claim, now) : null;
    this.#dropIfEmpty(claim.resource, room);
    return holding;
  }

  /**
   * A fresh life. A request that was held up on its way acts no earlier than what came before it, or
   * it would take back time that another one was promised.
   */
  arm(holding: Holding, now: number, ttlMs: number): void {
    holding.since = Math.max(holding.since, now);
    holding.ttlMs = ttlMs;
    holding.expiresAt = holding.since + ttlMs;
  }

  enqueue(waiting: Waiting): void {
    this.#room(waiting.claim.resource).line.push(waiting);
  }

  position(resource: string, grantId: string): number {
    return this.rooms.get(resource)?.line.findIndex((w) => w.claim.grantId === grantId) ?? -1;
  }

  /** Takes the grantId out of the room, holder or waiter; says whether there was anything. */
  end(resource: string, grantId: string, now: number): boolean {
    const room = this.rooms.get(resource);
    if (room === undefined) return false;
    const at = room.line.findIndex((w) => w.claim.grantId === grantId);
    if (at >= 0) room.line.splice(at, 1);
    const ended = room.holdings.delete(grantId) || at >= 0;
    this.settle(resource, now);
    return ended;
  }

  /** Removes what is over and lets in whom that makes eligible. */
  settle(resource: string, now: number): void {
    const room = this.rooms.get(resource);
    if (room === undefined) return;
    for (const [grantId, { expiresAt, claim }] of room.holdings) {
      if (expiresAt + claim.lockDelayMs <= now) room.holdings.delete(grantId);
    }
    while (room.line[0] !== undefined && fits(room, room.line[0].claim)) {
      const { claim, push } = room.line.shift()!;
      push(this.#grant(room, claim, now), now);
    }
    this.#dropIfEmpty(resource, room);
  }

  /** How long until something in the room ends by itself. */
  nextEndMs(resource: string, now: number): number {
    let soonest = Infinity;
    for (const { expiresAt, claim } of this.rooms.get(resource)?.holdings.values() ?? []) {
      soonest = Math.min(soonest, expiresAt + claim.lockDelayMs - now);
    }
    return soonest;
  }

  view(resource: string, now: number): ResourceView {
    const room = this.rooms.get(resource);
    const all = [...(room?.holdings.values() ?? [])];
    const over = all.filter((h) => h.expiresAt <= now);
    return {
      resource,
      holders: all.filter((h) => h.expiresAt > now).map((h) => holderView(h, now)),
      waiters: (room?.line ?? []).map(({ claim: { mode, label } }, position) => ({
        mode,
        label,
        position,
      })),
      closedMs: Math.max(0, ...over.map((h) => h.expiresAt + h.claim.lockDelayMs - now)),
    };
  }

  bury(grantId: string, now: number, forMs: number): void {
    for (const [id, until] of this.#tombstones) {
      if (until > now) break;
      this.#tombstones.delete(id);
    }
    this.#tombstones.set(grantId, now + forMs);
  }

  isBuried(grantId: string, now: number): boolean {
    return (this.#tombstones.get(grantId) ?? -Infinity) > now;
  }

  /** For tests: lets time pass for one resource only. */
  age(resource: string, ms: number): void {
    for (const holding of this.rooms.get(resource)?.holdings.values() ?? [])
      holding.expiresAt -= ms;
  }

  #grant(room: Room, claim: Claim, now: number): Holding {
    const token = this.#nextToken;
    this.#nextToken += BigInt(claim.tokens);
    const { ttlMs } = claim;
    const life = { since: now, ttlMs, expiresAt: now + ttlMs };
    const holding = { claim, token, ...life, order: 0, index: 0, left: false, revoked: false };
    room.holdings.set(claim.grantId, holding);
    return holding;
  }

  #refuseOtherLimit(room: Room, claim: Claim): void {
    if (claim.mode !== "shared") return;
    const claims = [...room.holdings.values(), ...room.line].map((entry) => entry.claim);
    const other = claims.find((c) => c.mode === "shared" && c.limit !== claim.limit);
    if (other) throw limitMismatch(claim.resource, claim.limit, other.limit);
  }

  #room(resource: string): Room {
    let room = this.rooms.get(resource);
    if (room === undefined) {
      room = { holdings: new Map(), line: [] };
      this.rooms.set(resource, room);
    }
    return room;
  }

  #dropIfEmpty(resource: string, room: Room): void {
    if (room.holdings.size === 0 && room.line.length === 0) this.rooms.delete(resource);
  }
}

export function holderView(holding: Holding, now: number): HolderView {
  const { claim, expiresAt, revoked } = holding;
  const { mode, label } = claim;
  return { mode, token: tokenInUse(holding), label, remainingMs: expiresAt - now, revoked };
}

export function tokenInUse({ token, index }: Holding): bigint {
  return token + BigInt(index);
}

function fits(room: Room, claim: Claim): boolean {
  if (room.holdings.size === 0) return true;
  if (claim.mode === "exclusive" || !allOf(room, "shared")) return false;
  return claim.limit === null || room.holdings.size < claim.limit;
}

function allOf(room: Room, mode: Mode): boolean {
  for (const { claim } of room.holdings.values()) if (claim.mode !== mode) return false;
  return true;
}
