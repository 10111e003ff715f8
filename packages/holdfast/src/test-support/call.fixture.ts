import { systemClock } from "../core/runtime/clock.js";
import type { Call } from "../engine.js";

let order = 0;

/** A call that starts now, numbered after all before it, as core's are. */
export function now(timeoutMs = 5_000): Call {
  return { startedAt: systemClock.now(), timeoutMs, order: ++order };
}
