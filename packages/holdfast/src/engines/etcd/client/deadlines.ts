import { systemClock } from "../../../core/runtime/clock.js";
import type { Call } from "../../../engine.js";

const OF_THE_TIME = 0.9;

/** When a call started, on the engine's clock and on core's clock. */
export interface CallTimes {
  readonly at: number;
  readonly deadline: number;
  readonly startedAt: number;
}

export function timesOf({ startedAt, timeoutMs }: Call): CallTimes {
  const at = systemClock.now();
  // A little before core's deadline, so that core gets our error instead of its own timeout.
  return { at, deadline: at + timeoutMs * OF_THE_TIME, startedAt };
}

/**
 * Converts an instant to core's clock, which may differ from ours. Never later than the call's
 * start.
 */
export function onCoreClock(since: number, { at, startedAt }: CallTimes): number {
  return Math.min(startedAt, since - at + startedAt);
}
