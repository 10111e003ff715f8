import type { GrantRow, PeerRow } from "./rows.js";
import type { Statements } from "./statements.js";

/** A grant made by another process lives so long until its waiter has seen it. */
export const CLAIM_WINDOW_MS = 1_500;
/** A waiter whose process has not been heard of for so long is out of the line. */
const WAITER_LIFE_MS = 5_000;

// The sweep reads all grants: one for each sighting would be as many reads as there are grants, squared.
const SWEEP_EVERY = 256;

/** What is left of a grant's life, before its lock-delay; negative when it is over. */
export function remainingLifeMs(statements: Statements, row: GrantRow): number {
  const lifeMs = row.claimed === 1 ? row.ttl_ms : Math.min(row.ttl_ms, CLAIM_WINDOW_MS);
  return remainingMs(statements, row.grant_id, row.frame, row.version, row.expires_at, lifeMs);
}

/** How much longer a process counts as present, without a further beat. */
export function remainingPresenceMs(
  statements: Statements,
  { id, frame, version, beat_at }: PeerRow,
): number {
  return remainingMs(statements, id, frame, version, beat_at + WAITER_LIFE_MS, WAITER_LIFE_MS);
}

/**
 * Instants of another frame cannot be compared with ours. What is unchanged for its whole life,
 * as our own clock counts it since we first saw it in this version, is over.
 */
function remainingMs(
  statements: Statements,
  subject: string,
  frame: string,
  version: number,
  endsAt: number,
  lifeMs: number,
): number {
  const own = statements.identity.frame;
  if (frame === own) return endsAt - statements.now;
  type Sighting = { version: number; seen_at: number };
  const seen = statements.get<Sighting>("sightingFind", subject, own);
  if (seen?.version === version) return seen.seen_at + lifeMs - statements.now;
  if (++statements.sightings % SWEEP_EVERY === 0) statements.run("sightingsSweep");
  statements.run("sightingInsert", subject, own, version, statements.now);
  return lifeMs;
}
