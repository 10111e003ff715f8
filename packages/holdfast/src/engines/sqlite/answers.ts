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
} from "../../engine.js";
import type { Ledger } from "./ledger.js";
import { type Blocker, type GrantRow, holderOf, isLeft } from "./rows.js";

// The head looks for a holder that died; the others only show that they are still there.
const HEAD_HEARTBEAT_MS = 250;
const HEARTBEAT_MS = 1_000;
// Without a bell the heartbeat is all that brings news.
const DEAF_HEARTBEAT_MS = 50;

/** One resource as a heartbeat finds it, once for all of its waiters. */
export interface Room {
  readonly blockers: readonly Blocker[];
  readonly line: ReadonlyMap<string, number>;
}

export function enter(ledger: Ledger, resource: string): Room {
  const blockers = ledger.blockers(resource);
  ledger.promote(resource, blockers);
  const line = new Map(ledger.line.all(resource).map((row, position) => [row.grant_id, position]));
  return { blockers, line };
}

/** The same grantId again: the same token, with a fresh ttl. A buried one is refused for good. */
export function repeat(
  ledger: Ledger,
  claim: Claim,
  blockers: readonly Blocker[],
  call: Call,
): Granted | Gone | null {
  if (ledger.tombstones.has(claim.grantId)) return { kind: "gone", why: "unknown" };
  const own = blockers.find(({ row }) => row.grant_id === claim.grantId);
  if (own === undefined) return null;
  // Within its lock-delay it is over, and its row is still there.
  if (own.leftMs <= 0) return { kind: "gone", why: "expired" };
  if (isLeft(own.row)) return { kind: "gone", why: "unknown" };
  if (own.row.revoked === 1) return { kind: "gone", why: "revoked" };
  return granted(ledger.arm(own.row, own.row.ttl_ms), call.startedAt);
}

/** A renewal that comes after a later one changes nothing, and is told what remains. */
export function renewed(ledger: Ledger, grant: RenewRef, call: Call): Renewed | Gone {
  const since = call.startedAt;
  if (ledger.renew(grant, call.order)) return { kind: "renewed", since, ttlMs: grant.ttlMs };
  const row = ledger.alive(grant);
  const { index = 0, leave = false } = grant;
  const refused =
    row === null ||
    (isLeft(row) && !leave) ||
    (row.revoked === 1 && index <= row.token_index) ||
    call.order >= row.last_order;
  if (refused) return whyGone(ledger, grant);
  return { kind: "renewed", since, ttlMs: ledger.lifeLeft(row) };
}

/** A grant that this waiter may act under, if it has come. */
export function arrived(ledger: Ledger, ref: GrantRef, call: Call): Granted | null {
  const row = ledger.alive(ref);
  if (row === null || isLeft(row) || row.revoked === 1) return null;
  return granted(ledger.arm(row, row.ttl_ms), call.startedAt);
}

/** Where a claim stands; `hears` says whether its process would notice a ring of its bell. */
export function standing(
  ledger: Ledger,
  ref: GrantRef,
  call: Call,
  hears: boolean,
): Granted | Queued | Unknown {
  const grant = arrived(ledger, ref, call);
  if (grant !== null) return grant;
  const waiter = ledger.line.find(ref.grantId);
  if (waiter === null) return { kind: "unknown" };
  return queued(ledger.line.position(waiter), ledger.blockers(waiter.resource), hears);
}

export function queued(position: number, blockers: readonly Blocker[], hears: boolean): Queued {
  const hearingMs = position === 0 ? HEAD_HEARTBEAT_MS : HEARTBEAT_MS;
  const usualMs = hears ? hearingMs : DEAF_HEARTBEAT_MS;
  const nextEndMs = Math.min(...blockers.map((b) => b.leftMs + b.row.lock_delay_ms));
  const nextHeartbeatMs = Math.min(usualMs, Math.max(1, nextEndMs));
  return { kind: "queued", position, nextHeartbeatMs, holders: holders(blockers) };
}

export function refOf({ resource, grant_id: grantId }: GrantRow): GrantRef {
  return { resource, grantId };
}

export function granted({ token, tokens, ttl_ms: ttlMs }: GrantRow, since: number): Granted {
  return { kind: "granted", token: BigInt(token), tokens, since, ttlMs };
}

export function holders(blockers: readonly Blocker[]): HolderView[] {
  return blockers.filter(({ leftMs }) => leftMs > 0).map(holderOf);
}

export function whyGone(ledger: Ledger, { resource, grantId }: GrantRef): Gone {
  const blockers = ledger.blockers(resource);
  const own = blockers.find(({ row }) => row.grant_id === grantId);
  if (own === undefined) return { kind: "gone", why: blockers.length > 0 ? "replaced" : "expired" };
  return { kind: "gone", why: own.row.revoked === 1 && own.leftMs > 0 ? "revoked" : "expired" };
}

export function findToken(ledger: Ledger, resource: string, token: bigint): GrantRow | null {
  const wanted = Number(token);
  const found = ledger
    .blockers(resource)
    .find(
      ({ row, leftMs }) => leftMs > 0 && wanted >= row.token && wanted < row.token + row.tokens,
    );
  return found?.row ?? null;
}

export function view(ledger: Ledger, resource: string): ResourceView {
  const blockers = ledger.blockers(resource);
  const over = blockers.filter(({ leftMs }) => leftMs <= 0);
  return {
    resource,
    holders: holders(blockers),
    waiters: ledger.line
      .all(resource)
      .map(({ mode, label }, position) => ({ mode, label, position })),
    closedMs: Math.max(0, ...over.map(({ row, leftMs }) => leftMs + row.lock_delay_ms)),
  };
}
