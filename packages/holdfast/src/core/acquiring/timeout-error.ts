import type { HolderView } from "../../engine.js";
import { AcquireTimeoutError } from "../../errors.js";
import type { Caller } from "../calling/call.js";

/** A wait whose waitMs is over. */
interface EndedWait {
  readonly resource: string;
  readonly startedAt: number;
}

/**
 * The error of a wait whose waitMs is over. Silence is not busy: if the backend did not answer, the
 * error says so and does not guess. failure: of the last request, null if the backend answered it.
 */
export function timeoutError(
  caller: Caller,
  { resource, startedAt }: EndedWait,
  failure: unknown,
  isAnswered: boolean,
  holders: readonly HolderView[],
): unknown {
  if (failure !== null) return failure;
  const waitedMs = caller.clock.now() - startedAt;
  if (!isAnswered) return caller.silence(waitedMs);
  return new AcquireTimeoutError(resource, waitedMs, holders);
}
