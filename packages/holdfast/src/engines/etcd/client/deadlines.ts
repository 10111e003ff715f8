import { systemClock } from "../../../core/runtime/clock.js";
import type { Call } from "../../../engine.js";

const OF_THE_TIME = 0.9;

/** When a call came in, on the engine's clock and on core's. */
export interface Entered {
  readonly at: number;
  readonly deadline: number;
  readonly startedAt: number;
}

export function enter({ startedAt, timeoutMs }: Call): Entered {
  const at = systemClock.now();
  // A little before core's own, so that what went wrong is told, and not silence.
  return { at, deadline: at + timeoutMs * OF_THE_TIME, startedAt };
}

/** Core's clock need not be ours; no honest answer counts from later than the call. */
export function inCore(since: number, { at, startedAt }: Entered): number {
  return Math.min(startedAt, since - at + startedAt);
}
