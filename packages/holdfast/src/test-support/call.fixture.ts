import { systemClock } from "../core/runtime/clock.js";
import type { Call } from "../engine.js";

let order = 0;

/** A call that starts now, with a greater number than all before it, like core's. */
export function now(timeoutMs = 5_000): Call {
  return { startedAt: systemClock.now(), timeoutMs, order: ++order };
}
