import type { Claim, HolderView, Mode } from "../../../engine.js";
import type { ProcessIdentity } from "../file/process-identity.js";

/** Rows of the tables in sql/schema.sql, with the names of their columns. */
export interface GrantRow {
  readonly resource: string;
  readonly grant_id: string;
  readonly mode: Mode;
  readonly share_limit: number | null;
  readonly token: number;
  readonly tokens: number;
  readonly ttl_ms: number;
  readonly lock_delay_ms: number;
  readonly label: string;
  readonly peer: string;
  readonly frame: string;
  readonly expires_at: number;
  readonly version: number;
  readonly claimed: 0 | 1;
  readonly revoked: 0 | 1;
  readonly token_index: number;
  readonly last_order: number;
}

export interface WaiterRow {
  readonly seq: number;
  readonly resource: string;
  readonly grant_id: string;
  readonly mode: Mode;
  readonly share_limit: number | null;
  readonly tokens: number;
  readonly ttl_ms: number;
  readonly lock_delay_ms: number;
  readonly label: string;
  readonly peer: string;
}

export interface PeerRow {
  readonly id: string;
  readonly boot: string;
  readonly pid_namespace: string;
  readonly pid: number;
  readonly started: string;
  readonly bell: number | null;
  readonly frame: string;
  readonly beat_at: number;
  readonly version: number;
}

/**
 * The holder has left this grant: nobody can renew it, and the death of a process does not end it.
 */
export function isLeft({ peer }: GrantRow): boolean {
  return peer === "";
}

export function tokenInUse({ token, token_index }: GrantRow): bigint {
  return BigInt(token + token_index);
}

/** A grant with its remaining time. Its lock-delay starts when that time reaches 0. */
export interface Blocker {
  readonly row: GrantRow;
  readonly remainingMs: number;
}

export function holderOf({ row, remainingMs }: Blocker): HolderView {
  const { mode, label, revoked } = row;
  return { mode, token: tokenInUse(row), label, remainingMs: remainingMs, revoked: revoked === 1 };
}

export function identityOf(row: PeerRow): ProcessIdentity {
  const { boot, frame, pid_namespace: pidNamespace, pid, started } = row;
  return { boot, frame, pidNamespace, pid, started };
}

export function claimOf(row: WaiterRow): Claim {
  return {
    resource: row.resource,
    grantId: row.grant_id,
    mode: row.mode,
    limit: row.share_limit,
    ttlMs: row.ttl_ms,
    lockDelayMs: row.lock_delay_ms,
    tokens: row.tokens,
    label: row.label,
  };
}
