import type { Terms } from "../../options.js";
import type { Grant } from "../holding/grant.js";
import type { Clock } from "../runtime/clock.js";

// A caller that waits again right after its turn is served many times in one grant. Unused tokens
// of a range cost nothing.
const TOKENS_PER_WAITER = 32;

/** How far one grant is handed over inside a process before the backend's queue has its turn. */
export interface HandOverBudget {
  readonly handOvers: number;
  readonly handOverMs: number;
}

/** A grant that the waiters of a process hand over to each other. */
export interface LocalGrant {
  readonly grant: Grant;
  readonly startedAt: number;
  /** The index of the token in use: how often the grant was handed over. */
  index: number;
}

/**
 * How many tokens to reserve when this many other waiters of the process may get the grant next.
 */
export function tokensFor(
  others: number,
  { handOvers }: HandOverBudget,
  tokenRange: number,
): number {
  return Math.min(tokenRange, handOvers + 1, 1 + TOKENS_PER_WAITER * others);
}

/**
 * Checked at every hand-over: a third of the usable life must be left, and it must be the ttl that
 * the next waiter asked for. Otherwise a grant of its own serves it better.
 */
export function canHandOver(
  { grant, startedAt, index }: LocalGrant,
  next: Terms,
  { handOvers, handOverMs }: HandOverBudget,
  clock: Clock,
): boolean {
  if (index + 1 >= grant.tokens || index >= handOvers) return false;
  // A renewal under way with another ttl would change the next lease's life when it is answered.
  const { group } = grant;
  if (!group.livesFor(next.ttlMs)) return false;
  const now = clock.now();
  if (now - startedAt >= handOverMs) return false;
  // A pushed grant lives shorter by this factor until its first renewal.
  const graceMs = next.graceMs * Math.min(1, group.lifeMs / group.ttlMs);
  return group.validUntil - graceMs - now > (group.lifeMs - graceMs) / 3;
}
