import { UsageError } from "../../errors.js";

/** How long unused rows are kept by default. */
export const IDLE_MS = 60_000;

export function checkIdle(idleMs: number): void {
  if (Number.isSafeInteger(idleMs) && idleMs >= 1_000) return;
  throw new UsageError(`idleMs is ${idleMs}; it must be a whole number of 1000 or more`);
}
