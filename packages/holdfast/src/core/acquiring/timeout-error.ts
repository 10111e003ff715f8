import type { HolderView } from "../../engine.js";
import { AcquireTimeoutError, EngineError } from "../../errors.js";
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

/**
 * The backend granted the claim, and the answer took so long that the lease would be lost on
 * arrival. That is a slow backend and no other holder, so it is a failure and not busy.
 */
export function lateGrantError(
  caller: Caller,
  { resource, startedAt }: EndedWait,
  ttlMs: number,
): EngineError {
  const tookMs = Math.round(caller.clock.now() - startedAt);
  const message = `the grant of "${resource}" came after ${tookMs} ms, too late for a ttl of ${ttlMs} ms`;
  return new EngineError(message, {
    ...{ effect: "unknown", retryable: true, reason: "unreachable", resource },
  });
}
