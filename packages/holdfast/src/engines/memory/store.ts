import type { Claim } from "../../engine.js";
import type { Waiting } from "./queue.js";
import { type Holding, Room } from "./resource-records.js";

export type { Waiting } from "./queue.js";
export type { Holding } from "./resource-records.js";

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
    room.refuseOtherLimit(claim);
    const isFree = room.line.length === 0 && room.fits(claim);
    const holding = isFree ? this.#grant(room, claim, now) : null;
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
    this.rooms.get(holding.claim.resource)?.expect(holding);
  }

  enqueue(waiting: Waiting): void {
    this.#room(waiting.claim.resource).line.join(waiting);
  }

  waits(resource: string, grantId: string): boolean {
    return this.rooms.get(resource)?.line.has(grantId) ?? false;
  }

  position(resource: string, grantId: string): number {
    return this.rooms.get(resource)?.line.position(grantId) ?? -1;
  }

  /** Takes the grantId out of the room, holder or waiter; says whether there was anything. */
  end(resource: string, grantId: string, now: number): boolean {
    const room = this.rooms.get(resource);
    if (room === undefined) return false;
    const left = room.line.leave(grantId) !== undefined;
    const ended = room.holdings.delete(grantId) || left;
    this.settle(resource, now);
    return ended;
  }

  /** Takes all that wait for an engine out of their lines: it hears of no turn any more. */
  leaveLines(owner: object): void {
    for (const [resource, room] of [...this.rooms]) {
      const own = [...room.line].filter((waiting) => waiting.owner === owner);
      for (const { claim } of own) room.line.leave(claim.grantId);
      if (own.length > 0) this.settle(resource, this.#latest);
    }
  }

  /** Removes what is over and lets in whom that makes eligible. */
  settle(resource: string, now: number): void {
    const room = this.rooms.get(resource);
    if (room === undefined) return;
    room.tidy(now);
    for (let first = room.line.first; first && room.fits(first.claim); first = room.line.first) {
      room.line.leave(first.claim.grantId);
      first.push(this.#grant(room, first.claim, now), now);
    }
    this.#dropIfEmpty(resource, room);
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
    const room = this.rooms.get(resource);
    for (const holding of room?.holdings.values() ?? []) {
      holding.expiresAt -= ms;
      room!.expect(holding);
    }
  }

  /** For tests: lets time pass for what was buried. */
  ageTombstones(ms: number): void {
    for (const [id, until] of this.#tombstones) this.#tombstones.set(id, until - ms);
  }

  #grant(room: Room, claim: Claim, now: number): Holding {
    const token = this.#nextToken;
    this.#nextToken += BigInt(claim.tokens);
    const { ttlMs } = claim;
    const life = { since: now, ttlMs, expiresAt: now + ttlMs };
    const holding = { claim, token, ...life, order: 0, index: 0, left: false, revoked: false };
    room.add(holding);
    return holding;
  }

  #room(resource: string): Room {
    let room = this.rooms.get(resource);
    if (room === undefined) {
      room = new Room();
      this.rooms.set(resource, room);
    }
    return room;
  }

  #dropIfEmpty(resource: string, room: Room): void {
    if (room.isEmpty) this.rooms.delete(resource);
  }
}
