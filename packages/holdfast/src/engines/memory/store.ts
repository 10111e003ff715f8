import type { Claim } from "../../engine.js";
import type { Waiter } from "./queue.js";
import { type Holding, ResourceRecords } from "./resource-records.js";

export type { Waiter } from "./queue.js";
export type { Holding } from "./resource-records.js";

/** What memory engines share: hand the same store to several, and they contend with each other. */
export class MemoryStore {
  readonly resources = new Map<string, ResourceRecords>();
  readonly changeListeners = new Set<(resource: string) => void>();
  readonly #tombstones = new Map<string, number>();
  #nextToken = 1n;
  #latestInstant = -Infinity;

  /** Time as the store knows it: that of the latest call, and never less. */
  instant(startedAt: number): number {
    this.#latestInstant = Math.max(this.#latestInstant, startedAt);
    return this.#latestInstant;
  }

  /** The holding after everything that time has ended is gone; null if it is not alive. */
  alive(resource: string, grantId: string, now: number): Holding | null {
    this.settle(resource, now);
    const holding = this.resources.get(resource)?.holdings.get(grantId);
    return holding !== undefined && holding.expiresAt > now ? holding : null;
  }

  /** Grants if nobody is in the way and nobody waits. */
  tryGrant(claim: Claim, now: number): Holding | null {
    this.settle(claim.resource, now);
    const records = this.#recordsOf(claim.resource);
    records.refuseOtherLimit(claim);
    const isFree = records.queue.length === 0 && records.fits(claim);
    const holding = isFree ? this.#grant(records, claim, now) : null;
    this.#dropIfEmpty(claim.resource, records);
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
    this.resources.get(holding.claim.resource)?.noteEnd(holding);
  }

  enqueue(waiter: Waiter): void {
    this.#recordsOf(waiter.claim.resource).queue.join(waiter);
  }

  isQueued(resource: string, grantId: string): boolean {
    return this.resources.get(resource)?.queue.has(grantId) ?? false;
  }

  position(resource: string, grantId: string): number {
    return this.resources.get(resource)?.queue.position(grantId) ?? -1;
  }

  /** Takes the grantId out of the records, holder or waiter; says whether there was anything. */
  end(resource: string, grantId: string, now: number): boolean {
    const records = this.resources.get(resource);
    if (records === undefined) return false;
    const wasQueued = records.queue.leave(grantId) !== undefined;
    const ended = records.holdings.delete(grantId) || wasQueued;
    this.settle(resource, now);
    return ended;
  }

  /** Takes all that wait for an engine out of their lines: it hears of no turn any more. */
  removeWaitersOf(engine: object): void {
    for (const [resource, records] of [...this.resources]) {
      const own = [...records.queue].filter((waiter) => waiter.engine === engine);
      for (const { claim } of own) records.queue.leave(claim.grantId);
      if (own.length > 0) this.settle(resource, this.#latestInstant);
    }
  }

  /** Removes what is over and lets in whom that makes eligible. */
  settle(resource: string, now: number): void {
    const records = this.resources.get(resource);
    if (records === undefined) return;
    records.removeEnded(now);
    for (
      let first = records.queue.first;
      first && records.fits(first.claim);
      first = records.queue.first
    ) {
      records.queue.leave(first.claim.grantId);
      first.push(this.#grant(records, first.claim, now), now);
    }
    this.#dropIfEmpty(resource, records);
  }

  addTombstone(grantId: string, now: number, forMs: number): void {
    for (const [id, until] of this.#tombstones) {
      if (until > now) break;
      this.#tombstones.delete(id);
    }
    this.#tombstones.set(grantId, now + forMs);
  }

  hasTombstone(grantId: string, now: number): boolean {
    return (this.#tombstones.get(grantId) ?? -Infinity) > now;
  }

  /** For tests: lets time pass for one resource only. */
  age(resource: string, ms: number): void {
    const records = this.resources.get(resource);
    for (const holding of records?.holdings.values() ?? []) {
      holding.expiresAt -= ms;
      records!.noteEnd(holding);
    }
  }

  /** For tests: lets time pass for what was buried. */
  ageTombstones(ms: number): void {
    for (const [id, until] of this.#tombstones) this.#tombstones.set(id, until - ms);
  }

  #grant(records: ResourceRecords, claim: Claim, now: number): Holding {
    const token = this.#nextToken;
    this.#nextToken += BigInt(claim.tokens);
    const { ttlMs } = claim;
    const life = { since: now, ttlMs, expiresAt: now + ttlMs };
    const holding = { claim, token, ...life, order: 0, index: 0, left: false, revoked: false };
    records.add(holding);
    return holding;
  }

  #recordsOf(resource: string): ResourceRecords {
    let records = this.resources.get(resource);
    if (records === undefined) {
      records = new ResourceRecords();
      this.resources.set(resource, records);
    }
    return records;
  }

  #dropIfEmpty(resource: string, records: ResourceRecords): void {
    if (records.isEmpty) this.resources.delete(resource);
  }
}
