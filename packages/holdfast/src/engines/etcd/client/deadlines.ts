import { systemClock } from "../../../core/runtime/clock.js";
import type { Call } from "../../../engine.js";

const OF_THE_TIME = 0.9;

/** When a call came in, on the engine's clock and on core's. */
export interface CallTimes {
  readonly at: number;
  readonly deadline: number;
  readonly startedAt: number;
}

export function timesOf({ startedAt, timeoutMs }: Call): CallTimes {
  const at = systemClock.now();
  // A little before core's own, so that what went wrong is told, and not silence.
  return { at, deadline: at + timeoutMs * OF_THE_TIME, startedAt };
}

/** Core's clock need not be ours; no honest answer counts from later than the call. */
export function onCoreClock(since: number, { at, startedAt }: CallTimes): number {
  return Math.min(startedAt, since - at + startedAt);
}
