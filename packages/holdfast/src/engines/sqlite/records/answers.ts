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
import type { Ledger } from "./lock-tables.js";
import { type Blocker, type GrantRow, holderOf, isLeft } from "./rows.js";

// The head looks for a holder that died; the others only show that they are still there.
const HEAD_HEARTBEAT_MS = 250;
const HEARTBEAT_MS = 1_000;
// Without a bell the heartbeat is all that brings news.
const DEAF_HEARTBEAT_MS = 50;
// So many waiters of one resource are looked up one by one in a heartbeat.
const LOOK_UPS = 16;
// Who is refused or waits is told of so many holders at most: thousands of readers would be listed
// anew with every heartbeat.
const HOLDERS_TOLD = 16;

/**
 * One resource as a heartbeat finds it, once for all of its waiters. Few of them are looked up one by
 * one; for many, the line is read once.
 */
export class Room {
  readonly #ledger: Ledger;
  readonly #resource: string;
  readonly #blockers: Blockers;
  #lookUps = 0;
  #line: ReadonlyMap<string, number> | null = null;

  constructor(ledger: Ledger, resource: string) {
    this.#ledger = ledger;
    this.#resource = resource;
    this.#blockers = ledger.blockers(resource);
    ledger.promote(resource, this.#blockers);
  }

  standing(ref: GrantRef, call: Call, hears: boolean): Granted | Queued | Unknown {
    if (++this.#lookUps <= LOOK_UPS) {
      return standing(this.#ledger, ref, call, this.#blockers, hears);
    }
    const position = this.#positions.get(ref.grantId);
    if (position !== undefined) return queued(position, this.#blockers, hears);
    return arrived(this.#ledger, ref, call) ?? { kind: "unknown" };
  }

  get #positions(): ReadonlyMap<string, number> {
    const { line } = this.#ledger;
    this.#line ??= new Map(
      line.all(this.#resource).map((row, position) => [row.grant_id, position]),
    );
    return this.#line;
  }
}

/** The same grantId again: the same token, with a fresh ttl. A buried one is refused for good. */
export function repeat(
  ledger: Ledger,
  claim: Claim,
  blockers: Blockers,
  call: Call,
): Granted | Gone | null {
  if (ledger.tombstones.has(claim.grantId)) return { kind: "gone", why: "unknown" };
  const own = blockers.find(claim.grantId);
  if (own === null) return null;
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
  blockers: Blockers,
  hears: boolean,
): Granted | Queued | Unknown {
  const grant = arrived(ledger, ref, call);
  if (grant !== null) return grant;
  const waiter = ledger.line.find(ref.grantId);
  if (waiter === null) return { kind: "unknown" };
  return queued(ledger.line.position(waiter), blockers, hears);
}

export function queued(position: number, blockers: Blockers, hears: boolean): Queued {
  const hearingMs = position === 0 ? HEAD_HEARTBEAT_MS : HEARTBEAT_MS;
  const usualMs = hears ? hearingMs : DEAF_HEARTBEAT_MS;
  let nextEndMs = Infinity;
  for (const { row, leftMs } of blockers.seen) {
    nextEndMs = Math.min(nextEndMs, leftMs + row.lock_delay_ms);
  }
  const nextHeartbeatMs = Math.min(usualMs, Math.max(1, nextEndMs));
  return { kind: "queued", position, nextHeartbeatMs, holders: holders(blockers.seen) };
}

export function refOf({ resource, grant_id: grantId }: GrantRow): GrantRef {
  return { resource, grantId };
}

export function granted({ token, tokens, ttl_ms: ttlMs }: GrantRow, since: number): Granted {
  return { kind: "granted", token: BigInt(token), tokens, since, ttlMs };
}

/** Who is in the way; not all of them, where they are many. */
export function holders(blockers: readonly Blocker[], most = HOLDERS_TOLD): HolderView[] {
  const views: HolderView[] = [];
  for (const blocker of blockers) {
    if (views.length === most) break;
    if (blocker.leftMs > 0) views.push(holderOf(blocker));
  }
  return views;
}

export function whyGone(ledger: Ledger, { resource, grantId }: GrantRef): Gone {
  const blockers = ledger.blockers(resource);
  const own = blockers.find(grantId);
  if (own === null) return { kind: "gone", why: blockers.atLeast(1) ? "replaced" : "expired" };
  return { kind: "gone", why: own.row.revoked === 1 && own.leftMs > 0 ? "revoked" : "expired" };
}

export function findToken(ledger: Ledger, resource: string, token: bigint): GrantRow | null {
  const found = ledger.blockers(resource).findToken(Number(token));
  return found !== null && found.leftMs > 0 ? found.row : null;
}

export function view(ledger: Ledger, resource: string): ResourceView {
  const blockers = ledger.blockers(resource).all();
  const over = blockers.filter(({ leftMs }) => leftMs <= 0);
  return {
    resource,
    holders: holders(blockers, Infinity),
    waiters: ledger.line
      .all(resource)
      .map(({ mode, label }, position) => ({ mode, label, position })),
    closedMs: over.reduce((ms, { row, leftMs }) => Math.max(ms, leftMs + row.lock_delay_ms), 0),
  };
}
