import type { Terms } from "../../options.js";
import type { Grant } from "../holding/grant.js";
import type { Clock } from "../runtime/clock.js";

// One that waits again right after its turn is served many times in one grant. A range that is not
// used up costs nothing but numbers.
const TOKENS_PER_WAITER = 32;

/** How far one grant is passed on inside a process before the backend's queue has its turn. */
export interface HandOverBudget {
  readonly handOvers: number;
  readonly handOverMs: number;
}

/** A grant that the waiters of a process pass on. */
export interface LocalTurn {
  readonly grant: Grant;
  readonly startedAt: number;
  /** Which of its tokens is in use: how often it was passed on. */
  index: number;
}

/** How many tokens to reserve for a grant that so many others of the process may get next. */
export function tokensFor(
  others: number,
  { handOvers }: HandOverBudget,
  tokenRange: number,
): number {
  return Math.min(tokenRange, handOvers + 1, 1 + TOKENS_PER_WAITER * others);
}

/**
 * Validity is looked at on every pass: a third of the next one's usable life must be left, and it
 * must be the life that the next one asked for, or it is better served by a grant of its own.
 */
export function canHandOver(
  { grant, startedAt, index }: LocalTurn,
  next: Terms,
  { handOvers, handOverMs }: HandOverBudget,
  clock: Clock,
): boolean {
  if (index + 1 >= grant.tokens || index >= handOvers) return false;
  // A renewal that is under way for another ttl would be the next one's, once it is answered.
  const { group } = grant;
  if (!group.livesFor(next.ttlMs)) return false;
  const now = clock.now();
  if (now - startedAt >= handOverMs) return false;
  // A grant that was pushed, and whose first renewal is under way, lives shorter by this factor.
  const graceMs = next.graceMs * Math.min(1, group.lifeMs / group.ttlMs);
  return group.validUntil - graceMs - now > (group.lifeMs - graceMs) / 3;
}
