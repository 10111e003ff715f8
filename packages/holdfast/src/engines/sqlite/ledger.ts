import type { Claim, GrantRef } from "../../engine.js";
import { limitMismatch } from "../../errors.js";
import type { SqlClient, Statement, Value } from "./client.js";
import { type Host, isOfEarlierBoot, isProvenDead } from "./host.js";
import {
  type Blocker,
  claimOf,
  fits,
  type GrantRow,
  identityOf,
  type PeerRow,
  type WaiterRow,
} from "./rows.js";
import { sql } from "./sql.gen.js";

/** A grant made by another process lives so long until its waiter has seen it. */
const CLAIM_WINDOW_MS = 1_500;
/** A waiter whose process has not been heard of for so long is out of the line. */
const WAITER_LIFE_MS = 5_000;
const SWEEP_AT_ONCE = 1_000;
/** Shorter than a head's heartbeat, so that each of them asks anew whether the holder lives. */
const PROOF_EVERY_MS = 100;
const MAX_SEEN_ALIVE = 1_000;

/** Thrown inside a transaction when the durable block of tokens is used up. */
export class TokensUsedUp {}

/**
 * What the tables mean. Every method runs inside a transaction that the engine has begun, at the
 * instant `now` of the host's clock; nothing here waits, and nothing here is asynchronous.
 */
export class Ledger {
  now = 0;
  /** Bells to ring, and grants of our own waiters to tell, once the transaction is committed. */
  readonly rings = new Set<number>();
  readonly granted: GrantRow[] = [];
  readonly #client: SqlClient;
  readonly #host: Host;
  readonly #peer: string;
  readonly #statements = new Map<string, Statement>();
  readonly #seenAlive = new Map<string, number>();

  constructor(client: SqlClient, host: Host, peer: string) {
    this.#client = client;
    this.#host = host;
    this.#peer = peer;
  }

  start(now: number): void {
    this.now = now;
    this.rings.clear();
    this.granted.length = 0;
  }

  /** Everything in the way, after what is over has been removed and dead holders have been ended. */
  blockers(resource: string): Blocker[] {
    const blockers: Blocker[] = [];
    for (const row of this.#all("grantsOf", resource) as GrantRow[]) {
      const leftMs = this.#lifeLeft(row);
      // A grant that its waiter never saw was never acted under: there is nothing to let drain.
      const lockDelayMs = row.claimed === 1 ? row.lock_delay_ms : 0;
      if (leftMs + lockDelayMs <= 0) {
        this.#run("grantDelete", resource, row.grant_id);
      } else if (leftMs > 0 && this.#isDead(row.peer)) {
        if (lockDelayMs === 0) this.#run("grantDelete", resource, row.grant_id);
        else blockers.push({ row: this.#expireNow(row), leftMs: 0 });
      } else {
        blockers.push({ row, leftMs });
      }
    }
    return blockers;
  }

  /** The grant if it is alive, without looking at anybody else's. */
  alive({ resource, grantId }: GrantRef): GrantRow | null {
    const row = this.#get("grantFind", resource, grantId) as GrantRow | undefined;
    return row !== undefined && this.#lifeLeft(row) > 0 ? row : null;
  }

  waiter(grantId: string): WaiterRow | null {
    return (this.#get("waiterFind", grantId) as WaiterRow | undefined) ?? null;
  }

  head(resource: string): WaiterRow | null {
    return (this.#get("waiterHead", resource) as WaiterRow | undefined) ?? null;
  }

  /** Grants at once if nobody is in the way and nobody waits; else says who is in the way. */
  tryGrant(claim: Claim, blockers: Blocker[], head: WaiterRow | null): GrantRow | Blocker[] {
    this.#refuseOtherLimit(claim, blockers);
    if (head !== null) {
      this.promote(claim.resource, blockers, head);
      if (this.head(claim.resource) !== null) return blockers;
    }
    return fits(blockers, claim.mode, claim.limit) ? this.#grant(claim, this.#peer) : blockers;
  }

  enqueue(claim: Claim): void {
    const { resource, grantId, mode, limit, tokens, ttlMs, lockDelayMs, label } = claim;
    this.#run(
      "waiterInsert",
      ...[resource, grantId, mode, limit, tokens, ttlMs, lockDelayMs, label, this.#peer],
    );
  }

  /**
   * Lets in from the head of the line whoever fits, and passes over those who are gone; blockers
   * grows by those let in. Our own waiters are told after the commit, except the caller.
   */
  promote(
    resource: string,
    blockers = this.blockers(resource),
    head = this.head(resource),
    caller?: string,
  ): void {
    for (let next = head; next !== null; next = this.head(resource)) {
      const peer = this.#present(next.peer);
      if (peer !== null && !fits(blockers, next.mode, next.share_limit)) return;
      this.#run("waiterDelete", next.grant_id);
      if (peer === null) continue;
      const row = this.#grant(claimOf(next), next.peer);
      blockers.push({ row, leftMs: row.ttl_ms });
      if (row.claimed === 0) this.#ring(peer);
      else if (row.grant_id !== caller) this.granted.push(row);
      // Nobody fits beside an exclusive holder: looking at the next one can wait for its end.
      if (row.mode === "exclusive") return;
    }
  }

  /** A fresh life for a grant, counted from now in our own frame. */
  arm(row: GrantRow, ttlMs: number): GrantRow {
    const expiresAt = this.now + ttlMs;
    this.#run("grantArm", row.resource, row.grant_id, ttlMs, this.#host.frame, expiresAt);
    return { ...row, ttl_ms: ttlMs, frame: this.#host.frame, expires_at: expiresAt, claimed: 1 };
  }

  renew({ resource, grantId }: GrantRef, ttlMs: number): boolean {
    const { frame } = this.#host;
    const ends = this.now + ttlMs;
    return this.#run("grantRenew", resource, grantId, ttlMs, ends, frame, this.now) > 0;
  }

  /** Ends a living grant; false if there is none. */
  end(ref: GrantRef): boolean {
    const { resource, grantId } = ref;
    const { frame } = this.#host;
    if (this.#run("grantRelease", resource, grantId, frame, this.now) === 0) {
      if (this.alive(ref) === null) return false;
      this.#run("grantDelete", resource, grantId);
    }
    const head = this.head(resource);
    if (head !== null) this.promote(resource, this.blockers(resource), head);
    return true;
  }

  leaveLine({ resource, grantId }: GrantRef): boolean {
    const left = this.#run("waiterDelete", grantId) > 0;
    if (left) this.promote(resource);
    return left;
  }

  revoke(row: GrantRow, force: boolean): void {
    this.#run("grantRevoke", row.resource, row.grant_id);
    if (force) this.end({ resource: row.resource, grantId: row.grant_id });
    const peer = this.#peerRow(row.peer);
    if (peer !== null) this.#ring(peer);
  }

  /** The line in order. */
  line(resource: string): readonly Pick<WaiterRow, "grant_id" | "mode" | "label">[] {
    return this.#all("waitersOf", resource) as WaiterRow[];
  }

  position(waiter: WaiterRow): number {
    const { position } = this.#get("waiterPosition", waiter.resource, waiter.seq) as {
      position: number;
    };
    return position;
  }

  /** The grants that others made for our waiters, now with a full life. */
  claimOwn(): GrantRow[] {
    return this.#all("grantsClaim", this.#peer, this.#host.frame, this.now) as GrantRow[];
  }

  /** Where a grant of ours was revoked. */
  revokedOwn(): string[] {
    const rows = this.#all("grantsRevoked", this.#peer) as { resource: string }[];
    return rows.map((row) => row.resource);
  }

  resourcesAfter(cursor: string, max: number): string[] {
    const rows = this.#all("resourcesAfter", cursor, max) as { resource: string }[];
    return rows.map((row) => row.resource);
  }

  bury(grantId: string, forMs: number): void {
    const { frame } = this.#host;
    this.#run("tombstonesSweep", frame, this.now);
    this.#run("tombstoneInsert", grantId, frame, this.now + forMs);
  }

  isBuried(grantId: string): boolean {
    const found = this.#get("tombstoneFind", grantId) as
      | { frame: string; until: number }
      | undefined;
    return found !== undefined && (found.frame !== this.#host.frame || found.until > this.now);
  }

  beat(bell: number | null): void {
    const { boot, pidNamespace, pid, started, frame } = this.#host;
    this.#run("peerBeat", this.#peer, boot, pidNamespace, pid, started, bell, frame, this.now);
  }

  /** Clears what dead processes left behind where nobody has asked for it since. */
  sweep(): void {
    this.#run("tombstonesSweep", this.#host.frame, this.now);
    const gone = (this.#all("peersAll") as PeerRow[]).filter((peer) => {
      const identity = identityOf(peer);
      return isProvenDead(identity, this.#host) || isOfEarlierBoot(identity, this.#host);
    });
    for (const peer of gone) this.#run("peerLeaveLine", peer.id);
    const held = this.#all("resourcesHeld", SWEEP_AT_ONCE) as { resource: string }[];
    for (const { resource } of held) this.promote(resource);
    for (const peer of gone) this.#run("peerForget", peer.id);
    this.#run("sightingsSweep");
  }

  /** Leaves no trace of this engine but the grants that it still holds. */
  leave(): void {
    this.#run("peerLeaveLine", this.#peer);
    this.#run("peerForget", this.#peer);
  }

  #grant(claim: Claim, peer: string): GrantRow {
    const ours = peer === this.#peer;
    const lifeMs = ours ? claim.ttlMs : Math.min(claim.ttlMs, CLAIM_WINDOW_MS);
    const { resource, grantId, mode, limit, tokens, ttlMs, lockDelayMs, label } = claim;
    const token = this.#takeTokens(tokens);
    const { frame } = this.#host;
    const expiresAt = this.now + lifeMs;
    this.#run(
      "grantInsert",
      ...[resource, grantId, mode, limit, token, tokens, ttlMs, lockDelayMs, label],
      ...[peer, frame, expiresAt, ours ? 1 : 0],
    );
    return {
      ...{ resource, grant_id: grantId, mode, share_limit: limit, token, tokens, ttl_ms: ttlMs },
      ...{ lock_delay_ms: lockDelayMs, label, peer, frame, expires_at: expiresAt, version: 0 },
      ...{ claimed: ours ? (1 as const) : (0 as const), revoked: 0 as const },
    };
  }

  #takeTokens(count: number): number {
    const { next, reserved } = this.#get("tokensTake", count) as { next: number; reserved: number };
    if (next > reserved) throw new TokensUsedUp();
    return next - count;
  }

  #refuseOtherLimit(claim: Claim, blockers: readonly Blocker[]): void {
    if (claim.mode !== "shared") return;
    const held = blockers.find((b) => b.row.mode === "shared" && b.row.share_limit !== claim.limit);
    const other = held?.row ?? this.#get("waitersOtherLimit", claim.resource, claim.limit);
    if (!other) return;
    throw limitMismatch(claim.resource, claim.limit, (other as GrantRow).share_limit);
  }

  #expireNow(row: GrantRow): GrantRow {
    this.#run("grantExpire", row.resource, row.grant_id, this.#host.frame, this.now);
    return { ...row, frame: this.#host.frame, expires_at: this.now };
  }

  #lifeLeft(row: GrantRow): number {
    const lifeMs = row.claimed === 1 ? row.ttl_ms : Math.min(row.ttl_ms, CLAIM_WINDOW_MS);
    return this.#left(row.grant_id, row.frame, row.version, row.expires_at, lifeMs);
  }

  /**
   * Instants of another frame cannot be compared with ours. What is unchanged for its whole life,
   * as our own clock counts it since we first saw it in this version, is over.
   */
  #left(subject: string, frame: string, version: number, endsAt: number, lifeMs: number): number {
    const own = this.#host.frame;
    if (frame === own) return endsAt - this.now;
    type Sighting = { version: number; seen_at: number } | undefined;
    const seen = this.#get("sightingFind", subject, own) as Sighting;
    if (seen?.version === version) return seen.seen_at + lifeMs - this.now;
    this.#run("sightingsSweep");
    this.#run("sightingInsert", subject, own, version, this.now);
    return lifeMs;
  }

  #isDead(peer: string): boolean {
    if (peer === this.#peer || this.#wasJustAlive(peer)) return false;
    const row = this.#peerRow(peer);
    return row !== null && this.#isProvenDead(row);
  }

  /** The peer of a waiter that is still there: not proven dead, and heard of lately. */
  #present(peer: string): PeerRow | null {
    const row = this.#peerRow(peer);
    if (row === null || peer === this.#peer) return row;
    if (!this.#wasJustAlive(peer) && this.#isProvenDead(row)) return null;
    const ends = row.beat_at + WAITER_LIFE_MS;
    const leftMs = this.#left(row.id, row.frame, row.version, ends, WAITER_LIFE_MS);
    return leftMs > 0 ? row : null;
  }

  /** Asking the system takes as long as all the rest of a transaction; once in a while is enough. */
  #isProvenDead(row: PeerRow): boolean {
    if (isProvenDead(identityOf(row), this.#host)) return true;
    if (this.#seenAlive.size >= MAX_SEEN_ALIVE) this.#seenAlive.clear();
    this.#seenAlive.set(row.id, this.now);
    return false;
  }

  #wasJustAlive(peer: string): boolean {
    return this.now - (this.#seenAlive.get(peer) ?? -Infinity) < PROOF_EVERY_MS;
  }

  #peerRow(peer: string): PeerRow | null {
    return (this.#get("peerFind", peer) as PeerRow | undefined) ?? null;
  }

  #ring(peer: PeerRow): void {
    if (peer.bell !== null) this.rings.add(peer.bell);
  }

  #get(name: keyof typeof sql, ...params: Value[]): unknown {
    return this.#statement(name).get(...params);
  }

  #all(name: keyof typeof sql, ...params: Value[]): unknown[] {
    return this.#statement(name).all(...params);
  }

  #run(name: keyof typeof sql, ...params: Value[]): number {
    return Number(this.#statement(name).run(...params).changes);
  }

  #statement(name: keyof typeof sql): Statement {
    let statement = this.#statements.get(name);
    if (statement === undefined) {
      statement = this.#client.prepare(sql[name]);
      this.#statements.set(name, statement);
    }
    return statement;
  }
}
