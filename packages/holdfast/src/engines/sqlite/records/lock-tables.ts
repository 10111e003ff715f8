import type { Claim, GrantRef, RenewRef } from "../../../engine.js";
import { limitMismatch } from "../../../errors.js";
import type { SqlClient } from "../file/client.js";
import type { ProcessIdentity } from "../file/process-identity.js";
import { Blockers } from "./blockers.js";
import { CLAIM_WINDOW_MS, remainingLifeMs } from "./liveness.js";
import { Peers } from "./peers.js";
import { Queue } from "./queue.js";
import { type Blocker, claimOf, type GrantRow, isLeft, type WaiterRow } from "./rows.js";
import { Statements } from "./statements.js";
import { Tombstones } from "./tombstones.js";

const SWEEP_AT_ONCE = 1_000;

/** Thrown inside a transaction when the durable block of tokens is used up. */
export class TokensUsedUp {}

/**
 * The operations on the tables of sql/schema.sql. Every method runs inside a transaction that the
 * store has begun, at one instant of the host's clock. Nothing here waits or is asynchronous.
 */
export class LockTables {
  readonly peers: Peers;
  readonly queue: Queue;
  readonly tombstones: Tombstones;
  /** Grants to push to our own waiters after the transaction is committed. */
  readonly granted: GrantRow[] = [];
  readonly #statements: Statements;

  constructor(client: SqlClient, identity: ProcessIdentity, self: string) {
    this.#statements = new Statements(client, identity, self);
    this.peers = new Peers(this.#statements);
    this.queue = new Queue(this.#statements);
    this.tombstones = new Tombstones(this.#statements);
  }

  start(now: number): void {
    this.#statements.now = now;
    this.peers.toWake.clear();
    this.granted.length = 0;
  }

  /**
   * The grants that block a resource. Reading them removes ended grants and ends those of dead
   * holders.
   */
  blockers(resource: string): Blockers {
    return new Blockers(this.#statements, resource, (row) => this.#examine(row));
  }

  /** The grant if it is alive. Reads no other grant. */
  alive({ resource, grantId }: GrantRef): GrantRow | null {
    const row = this.#statements.get<GrantRow>("grantFind", resource, grantId);
    return row !== null && remainingLifeMs(this.#statements, row) > 0 ? row : null;
  }

  remainingLifeMs(row: GrantRow): number {
    return remainingLifeMs(this.#statements, row);
  }

  /** Grants at once if nothing blocks the claim and nobody waits. */
  tryGrant(claim: Claim, blockers: Blockers, head: WaiterRow | null): GrantRow | null {
    this.#refuseOtherLimit(claim, blockers);
    if (head !== null) {
      this.promote(claim.resource, blockers, head);
      if (this.queue.head(claim.resource) !== null) return null;
    }
    return blockers.fits(claim.mode, claim.limit)
      ? this.#grant(claim, this.#statements.self)
      : null;
  }

  /**
   * Grants to the waiters at the head of the queue as long as they fit, and removes waiters whose
   * process is gone. Adds the new grants to blockers. Our own waiters get a push after the commit,
   * except the caller, whose answer says it.
   */
  promote(
    resource: string,
    blockers = this.blockers(resource),
    head = this.queue.head(resource),
    caller?: string,
  ): void {
    for (let next = head; next !== null; next = this.queue.head(resource)) {
      const peer = this.peers.present(next.peer);
      if (peer !== null && !blockers.fits(next.mode, next.share_limit)) return;
      this.queue.leave(next.grant_id);
      if (peer === null) continue;
      const row = this.#grant(claimOf(next), next.peer);
      blockers.add({ row, remainingMs: row.ttl_ms });
      if (row.claimed === 0) this.peers.wake(peer);
      else if (row.grant_id !== caller) this.granted.push(row);
      // No claim fits beside an exclusive holder, so the next waiter need not be read now.
      if (row.mode === "exclusive") return;
    }
  }

  /** Restarts a grant's ttl from now, in our own frame. */
  arm(row: GrantRow, ttlMs: number): GrantRow {
    const expiresAt = this.#statements.now + ttlMs;
    this.#statements.run(
      "grantArm",
      row.resource,
      row.grant_id,
      ttlMs,
      this.#statements.identity.frame,
      expiresAt,
    );
    return {
      ...row,
      ttl_ms: ttlMs,
      frame: this.#statements.identity.frame,
      expires_at: expiresAt,
      claimed: 1,
    };
  }

  /**
   * Renews a grant; false if grant-renew.sql refuses. `order` is the order in which core sent
   * renewals.
   */
  renew({ resource, grantId, ttlMs, index = 0, leave = false }: RenewRef, order: number): boolean {
    const { identity, now } = this.#statements;
    const life = [ttlMs, now + ttlMs, identity.frame, now];
    const changed = this.#statements.run(
      "grantRenew",
      ...[resource, grantId, ...life, order, index, leave ? 1 : 0],
    );
    return changed > 0;
  }

  /** Ends a live grant that its holder has not left; false if there is none. */
  end(ref: GrantRef): boolean {
    const { resource, grantId } = ref;
    const { frame } = this.#statements.identity;
    if (
      this.#statements.run("grantRelease", resource, grantId, frame, this.#statements.now) === 0
    ) {
      const row = this.alive(ref);
      if (row === null || isLeft(row)) return false;
      this.#statements.run("grantDelete", resource, grantId);
    }
    this.#promoteNext(resource);
    return true;
  }

  leaveQueue({ resource, grantId }: GrantRef): boolean {
    const left = this.queue.leave(grantId);
    if (left) this.promote(resource);
    return left;
  }

  revoke(row: GrantRow, force: boolean): void {
    this.#statements.run("grantRevoke", row.resource, row.grant_id);
    if (force) {
      this.#statements.run("grantDelete", row.resource, row.grant_id);
      this.#promoteNext(row.resource);
    }
    const peer = this.peers.find(row.peer);
    if (peer === null) return;
    if (force && peer.bell !== null) this.tombstones.addForcedEnd(row.peer, row.resource);
    this.peers.wake(peer);
  }

  /**
   * Claims the grants that other processes made for our waiters. Each gets its full ttl from now.
   */
  claimOwnGrants(): GrantRow[] {
    const { self, identity, now } = this.#statements;
    return this.#statements.all<GrantRow>("grantsClaim", self, identity.frame, now);
  }

  /** The resources on which a grant of ours was revoked or ended by force. */
  revokedOwnResources(): string[] {
    const { self } = this.#statements;
    const rows = this.#statements.all<{ resource: string }>("grantsRevoked", self);
    return [...rows.map((row) => row.resource), ...this.tombstones.takeForcedEnds(self)];
  }

  resourcesAfter(cursor: string, max: number): string[] {
    const rows = this.#statements.all<{ resource: string }>("resourcesAfter", cursor, max);
    return rows.map((row) => row.resource);
  }

  /**
   * Removes what the dead, and what has ended, left on resources that nobody has used since. `dead`
   * was asked for before the transaction.
   */
  sweep(dead: ReadonlySet<string>): void {
    this.tombstones.sweep();
    this.peers.sweep(dead, () => {
      const held = this.#statements.all<{ resource: string }>("resourcesHeld", SWEEP_AT_ONCE);
      for (const { resource } of held) {
        const blockers = this.blockers(resource);
        // Reading a grant of a dead process ends it.
        blockers.all();
        this.promote(resource, blockers);
      }
    });
    this.#statements.run("sightingsSweep");
  }

  /** The grant with its remaining time. Removes a grant that is over, and ends a dead holder's. */
  #examine(row: GrantRow): Blocker | null {
    const remainingMs = remainingLifeMs(this.#statements, row);
    // A waiter that never claimed its grant has done nothing under it, so no lock-delay is needed.
    const lockDelayMs = row.claimed === 1 ? row.lock_delay_ms : 0;
    const isOver = remainingMs + lockDelayMs <= 0;
    const isOrphaned = remainingMs > 0 && !isLeft(row) && this.peers.isDead(row.peer);
    if (isOver || (isOrphaned && lockDelayMs === 0)) {
      this.#statements.run("grantDelete", row.resource, row.grant_id);
      return null;
    }
    return isOrphaned ? { row: this.#expireNow(row), remainingMs: 0 } : { row, remainingMs };
  }

  #promoteNext(resource: string): void {
    const head = this.queue.head(resource);
    if (head !== null) this.promote(resource, this.blockers(resource), head);
  }

  #grant(claim: Claim, peer: string): GrantRow {
    const ours = peer === this.#statements.self;
    const lifeMs = ours ? claim.ttlMs : Math.min(claim.ttlMs, CLAIM_WINDOW_MS);
    const { resource, grantId, mode, limit, tokens, ttlMs, lockDelayMs, label } = claim;
    const token = this.#takeTokens(tokens);
    const { frame } = this.#statements.identity;
    const expiresAt = this.#statements.now + lifeMs;
    this.#statements.run(
      "grantInsert",
      ...[resource, grantId, mode, limit, token, tokens, ttlMs, lockDelayMs, label],
      ...[peer, frame, expiresAt, ours ? 1 : 0],
    );
    return {
      ...{ resource, grant_id: grantId, mode, share_limit: limit, token, tokens, ttl_ms: ttlMs },
      ...{ lock_delay_ms: lockDelayMs, label, peer, frame, expires_at: expiresAt, version: 0 },
      ...{ claimed: ours ? (1 as const) : (0 as const), revoked: 0 as const },
      ...{ token_index: 0, last_order: 0 },
    };
  }

  #takeTokens(count: number): number {
    type Counter = { next: number; reserved: number };
    const { next, reserved } = this.#statements.one<Counter>("tokensTake", count);
    if (next > reserved) throw new TokensUsedUp();
    return next - count;
  }

  #refuseOtherLimit(claim: Claim, blockers: Blockers): void {
    if (claim.mode !== "shared") return;
    // All shared claims of a resource have one limit, so any holder or waiter shows it.
    const isShared = blockers.mode === "shared";
    const limit = isShared ? blockers.loaded[0]!.row.share_limit : this.queue.limit(claim.resource);
    if (limit === undefined || limit === claim.limit) return;
    throw limitMismatch(claim.resource, claim.limit, limit);
  }

  #expireNow(row: GrantRow): GrantRow {
    this.#statements.run(
      "grantExpire",
      row.resource,
      row.grant_id,
      this.#statements.identity.frame,
      this.#statements.now,
    );
    return { ...row, frame: this.#statements.identity.frame, expires_at: this.#statements.now };
  }
}
