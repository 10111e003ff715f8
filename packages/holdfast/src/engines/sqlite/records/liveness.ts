import type { GrantRow, PeerRow } from "./rows.js";
import type { Statements } from "./statements.js";

/** A grant that another process made for a waiter lives this long, until the waiter claims it. */
export const CLAIM_WINDOW_MS = 1_500;
/** A waiter is skipped in the queue if its process has sent no heartbeat for this long. */
const WAITER_LIFE_MS = 5_000;

// A sweep reads all grants. A sweep at each sighting would cost the square of the number of grants.
const SWEEP_EVERY = 256;

/** The time until a grant expires, without its lock-delay; negative after that. */
export function remainingLifeMs(statements: Statements, row: GrantRow): number {
  const lifeMs = row.claimed === 1 ? row.ttl_ms : Math.min(row.ttl_ms, CLAIM_WINDOW_MS);
  return remainingMs(statements, row.grant_id, row.frame, row.version, row.expires_at, lifeMs);
}

/** How much longer a process counts as present without another heartbeat. */
export function remainingPresenceMs(
  statements: Statements,
  { id, frame, version, beat_at }: PeerRow,
): number {
  return remainingMs(statements, id, frame, version, beat_at + WAITER_LIFE_MS, WAITER_LIFE_MS);
}

/**
 * Instants of another frame cannot be compared with ours. A row of another frame is over when its
 * version has not changed for its whole life, counted by our own clock since we first saw that
 * version.
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
  const sighting = statements.get<Sighting>("sightingFind", subject, own);
  if (sighting?.version === version) return sighting.seen_at + lifeMs - statements.now;
  if (++statements.sightings % SWEEP_EVERY === 0) statements.run("sightingsSweep");
  statements.run("sightingInsert", subject, own, version, statements.now);
  return lifeMs;
}
