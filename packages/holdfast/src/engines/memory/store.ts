import type { Claim } from "../../engine.js";
import type { QueuedWaiter } from "./queue.js";
import { type MemoryGrant, ResourceRecords } from "./resource-records.js";

export type { QueuedWaiter } from "./queue.js";
export type { MemoryGrant } from "./resource-records.js";

/** The state that memory engines share. Engines on the same store contend with each other. */
export class MemoryStore {
  readonly resources = new Map<string, ResourceRecords>();
  readonly changeListeners = new Set<(resource: string) => void>();
  readonly #tombstones = new Map<string, number>();
  #nextToken = 1n;
  #latestInstant = -Infinity;

  /** The store's time: the start of the latest call. It never goes back. */
  instant(startedAt: number): number {
    this.#latestInstant = Math.max(this.#latestInstant, startedAt);
    return this.#latestInstant;
  }

  /** The grant if it is alive, else null. First removes what time has ended. */
  alive(resource: string, grantId: string, now: number): MemoryGrant | null {
    this.settle(resource, now);
    const grant = this.resources.get(resource)?.grants.get(grantId);
    return grant !== undefined && grant.expiresAt > now ? grant : null;
  }

  /** Grants the claim if no holder blocks it and the queue is empty. */
  tryGrant(claim: Claim, now: number): MemoryGrant | null {
    this.settle(claim.resource, now);
    const records = this.#recordsOf(claim.resource);
    records.refuseOtherLimit(claim);
    const isFree = records.queue.length === 0 && records.fits(claim);
    const grant = isFree ? this.#grant(records, claim, now) : null;
    this.#dropIfEmpty(claim.resource, records);
    return grant;
  }

  /**
   * Restarts the ttl. A delayed request counts from no earlier instant than the request before it;
   * otherwise it would take back time that the holder was promised.
   */
  arm(grant: MemoryGrant, now: number, ttlMs: number): void {
    grant.since = Math.max(grant.since, now);
    grant.ttlMs = ttlMs;
    grant.expiresAt = grant.since + ttlMs;
    this.resources.get(grant.claim.resource)?.noteEnd(grant);
  }

  enqueue(waiter: QueuedWaiter): void {
    this.#recordsOf(waiter.claim.resource).queue.join(waiter);
  }

  isQueued(resource: string, grantId: string): boolean {
    return this.resources.get(resource)?.queue.has(grantId) ?? false;
  }

  position(resource: string, grantId: string): number {
    return this.resources.get(resource)?.queue.position(grantId) ?? -1;
  }

  /** Removes the holder or waiter with this grantId; says whether there was one. */
  end(resource: string, grantId: string, now: number): boolean {
    const records = this.resources.get(resource);
    if (records === undefined) return false;
    const wasQueued = records.queue.leave(grantId) !== undefined;
    const ended = records.grants.delete(grantId) || wasQueued;
    this.settle(resource, now);
    return ended;
  }

  /** Removes all waiters of an engine that closes: nobody would hear of their grants. */
  removeWaitersOf(engine: object): void {
    for (const [resource, records] of [...this.resources]) {
      const own = [...records.queue].filter((waiter) => waiter.engine === engine);
      for (const { claim } of own) records.queue.leave(claim.grantId);
      if (own.length > 0) this.settle(resource, this.#latestInstant);
    }
  }

  /** Removes grants that have ended, and gives new ones to waiters that became eligible. */
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
    for (const grant of records?.grants.values() ?? []) {
      grant.expiresAt -= ms;
      records!.noteEnd(grant);
    }
  }

  /** For tests: lets time pass for tombstones. */
  ageTombstones(ms: number): void {
    for (const [id, until] of this.#tombstones) this.#tombstones.set(id, until - ms);
  }

  #grant(records: ResourceRecords, claim: Claim, now: number): MemoryGrant {
    const token = this.#nextToken;
    this.#nextToken += BigInt(claim.tokens);
    const { ttlMs } = claim;
    const life = { since: now, ttlMs, expiresAt: now + ttlMs };
    const grant = { claim, token, ...life, order: 0, index: 0, left: false, revoked: false };
    records.add(grant);
    return grant;
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
