import type {
  Call,
  Claim,
  Gone,
  Granted,
  GrantRef,
  HolderView,
  Queued,
  Renewed,
  RenewRef,
  ResourceView,
  Unknown,
} from "../../../engine.js";
import type { Blockers } from "./blockers.js";
import type { LockTables } from "./lock-tables.js";
import { type Blocker, type GrantRow, holderOf, isLeft } from "./rows.js";

// The head's heartbeat also notices a holder that died; other heartbeats only show that a waiter
// lives.
const HEAD_HEARTBEAT_MS = 250;
const HEARTBEAT_MS = 1_000;
// Without a wake file, only heartbeats tell a waiter about its grant.
const UNWOKEN_HEARTBEAT_MS = 50;
// A heartbeat looks up at most this many waiters of one resource one by one.
const MAX_LOOKUPS = 16;
// A refused or queued claim is told about this many holders at most. Otherwise every heartbeat
// would list thousands of readers again.
const MAX_HOLDERS_REPORTED = 16;

/**
 * The state of one resource for one heartbeat call, read once for all of its waiters. The first
 * waiters are looked up one by one; if there are more, the whole queue is read once.
 */
export class ResourceHeartbeat {
  readonly #tables: LockTables;
  readonly #resource: string;
  readonly #blockers: Blockers;
  #lookups = 0;
  #positionOf: ReadonlyMap<string, number> | null = null;

  constructor(tables: LockTables, resource: string) {
    this.#tables = tables;
    this.#resource = resource;
    this.#blockers = tables.blockers(resource);
    tables.promote(resource, this.#blockers);
  }

  claimState(ref: GrantRef, call: Call, hasWakeFile: boolean): Granted | Queued | Unknown {
    if (++this.#lookups <= MAX_LOOKUPS) {
      return claimState(this.#tables, ref, call, this.#blockers, hasWakeFile);
    }
    const position = this.#positions.get(ref.grantId);
    if (position !== undefined) return queued(position, this.#blockers, hasWakeFile);
    return takeGrant(this.#tables, ref, call) ?? { kind: "unknown" };
  }

  get #positions(): ReadonlyMap<string, number> {
    const { queue } = this.#tables;
    this.#positionOf ??= new Map(
      queue.all(this.#resource).map((row, position) => [row.grant_id, position]),
    );
    return this.#positionOf;
  }
}

/**
 * Answers a repeated grantId: the same token, with a fresh ttl. A grantId with a tombstone is
 * refused. Null for a new grantId.
 */
export function answerRepeat(
  tables: LockTables,
  claim: Claim,
  blockers: Blockers,
  call: Call,
): Granted | Gone | null {
  if (tables.tombstones.has(claim.grantId)) return { kind: "gone", why: "unknown" };
  const own = blockers.find(claim.grantId);
  if (own === null) return null;
  // The grant has expired; its row stays until its lock-delay is over.
  if (own.remainingMs <= 0) return { kind: "gone", why: "expired" };
  if (isLeft(own.row)) return { kind: "gone", why: "unknown" };
  if (own.row.revoked === 1) return { kind: "gone", why: "revoked" };
  return granted(tables.arm(own.row, own.row.ttl_ms), call.startedAt);
}

/**
 * A renewal that arrives after a later one changes nothing, and is answered with the remaining
 * time.
 */
export function renew(tables: LockTables, grant: RenewRef, call: Call): Renewed | Gone {
  const since = call.startedAt;
  if (tables.renew(grant, call.order)) return { kind: "renewed", since, ttlMs: grant.ttlMs };
  const row = tables.alive(grant);
  const { index = 0, leave = false } = grant;
  const refused =
    row === null ||
    (isLeft(row) && !leave) ||
    (row.revoked === 1 && index <= row.token_index) ||
    call.order >= row.last_order;
  if (refused) return whyGone(tables, grant);
  return { kind: "renewed", since, ttlMs: tables.remainingLifeMs(row) };
}

/** The waiter's grant with a fresh ttl, if it has one that it may use; else null. */
export function takeGrant(tables: LockTables, ref: GrantRef, call: Call): Granted | null {
  const row = tables.alive(ref);
  if (row === null || isLeft(row) || row.revoked === 1) return null;
  return granted(tables.arm(row, row.ttl_ms), call.startedAt);
}

/** Whether a claim is granted, queued or unknown. `hasWakeFile`: its process can be woken. */
export function claimState(
  tables: LockTables,
  ref: GrantRef,
  call: Call,
  blockers: Blockers,
  hasWakeFile: boolean,
): Granted | Queued | Unknown {
  const grant = takeGrant(tables, ref, call);
  if (grant !== null) return grant;
  const waiter = tables.queue.find(ref.grantId);
  if (waiter === null) return { kind: "unknown" };
  return queued(tables.queue.position(waiter), blockers, hasWakeFile);
}

export function queued(position: number, blockers: Blockers, hasWakeFile: boolean): Queued {
  const wokenMs = position === 0 ? HEAD_HEARTBEAT_MS : HEARTBEAT_MS;
  const usualMs = hasWakeFile ? wokenMs : UNWOKEN_HEARTBEAT_MS;
  let nextEndMs = Infinity;
  for (const { row, remainingMs } of blockers.loaded) {
    nextEndMs = Math.min(nextEndMs, remainingMs + row.lock_delay_ms);
  }
  const nextHeartbeatMs = Math.min(usualMs, Math.max(1, nextEndMs));
  return { kind: "queued", position, nextHeartbeatMs, holders: holders(blockers.loaded) };
}

export function refOf({ resource, grant_id: grantId }: GrantRow): GrantRef {
  return { resource, grantId };
}

export function granted({ token, tokens, ttl_ms: ttlMs }: GrantRow, since: number): Granted {
  return { kind: "granted", token: BigInt(token), tokens, since, ttlMs };
}

/** The holders among the blockers, at most `most` of them. */
export function holders(blockers: readonly Blocker[], most = MAX_HOLDERS_REPORTED): HolderView[] {
  const views: HolderView[] = [];
  for (const blocker of blockers) {
    if (views.length === most) break;
    if (blocker.remainingMs > 0) views.push(holderOf(blocker));
  }
  return views;
}

export function whyGone(tables: LockTables, { resource, grantId }: GrantRef): Gone {
  const blockers = tables.blockers(resource);
  const own = blockers.find(grantId);
  if (own === null) return { kind: "gone", why: blockers.atLeast(1) ? "replaced" : "expired" };
  return {
    kind: "gone",
    why: own.row.revoked === 1 && own.remainingMs > 0 ? "revoked" : "expired",
  };
}

export function findToken(tables: LockTables, resource: string, token: bigint): GrantRow | null {
  const found = tables.blockers(resource).findToken(Number(token));
  return found !== null && found.remainingMs > 0 ? found.row : null;
}

export function view(tables: LockTables, resource: string): ResourceView {
  const blockers = tables.blockers(resource).all();
  const over = blockers.filter(({ remainingMs }) => remainingMs <= 0);
  return {
    resource,
    holders: holders(blockers, Infinity),
    waiters: tables.queue
      .all(resource)
      .map(({ mode, label }, position) => ({ mode, label, position })),
    closedMs: over.reduce(
      (ms, { row, remainingMs }) => Math.max(ms, remainingMs + row.lock_delay_ms),
      0,
    ),
  };
}
