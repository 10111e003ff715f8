import type { Failed } from "../../../engine.js";
import { failed } from "../../../engine-kit/settle-each.js";
import { EngineError, type FailureReason } from "../../../errors.js";

const NO_SPACE = /space exceeded/;

type Refusal = readonly [pattern: RegExp, says: string, retryable: boolean, reason?: FailureReason];

/** The messages with which etcd refuses a request, and what they mean. */
const REFUSALS: readonly Refusal[] = [
  [/no leader/, "etcd has no leader", true],
  [/too many requests/, "etcd has too many requests to do", true],
  [/not supported for learner/, "this member of etcd is still learning", true],
  [NO_SPACE, "etcd is out of space (its quota) and refuses to write", true],
  [
    /permission denied/,
    "this etcd user may not do what locks need; docs/engines/etcd.md of the package holdfast lists it",
    ...([false, "rights"] as const),
  ],
  [
    /user name is empty|user name not found|authentication failed|invalid user name or password/,
    "etcd wants a user name and password, or others than it got",
    ...([false, "credentials"] as const),
  ],
  [
    /authentication is not enabled/,
    "etcd has no authentication, and got a user name",
    false,
    "credentials",
  ],
  [/too large|too many operations/, "etcd refuses a request as too large", false],
];

const MALFORMED = "malformed";
const NO_LEASE = /requested lease not found/;
const STALE_TOKEN = /invalid auth token|revision of auth store is old|token.*expired/;

/** A request that etcd refuses has no effect. One that timed out inside etcd may have an effect. */
export function refusal(message: string): EngineError {
  const known = REFUSALS.find(([pattern]) => pattern.test(message));
  if (known !== undefined) return engineError(known[1], "none", known[2], message, known[3]);
  const none = NO_LEASE.test(message) || STALE_TOKEN.test(message);
  return engineError(`etcd answered: ${message}`, none ? "none" : "unknown", true, message);
}

/** The server that answered is not a gateway of etcd. */
export function noGateway(): EngineError {
  const says = "this server has no JSON gateway (/v3); is it an etcd of 3.4 or later?";
  return engineError(says, "none", false, "not found");
}

/** The answer does not fit the request, so the effect is unknown. */
export function malformed(what: string): EngineError {
  return engineError(`etcd's answer cannot be read: ${what}`, "unknown", true, MALFORMED);
}

/** No answer came. A request that was never sent has no effect. */
export function noAnswer(where: string, cause: Error, sent: boolean): EngineError {
  const effect = sent ? "unknown" : "none";
  const message = `no answer from etcd at ${where}: ${cause.message}`;
  return new EngineError(message, { effect, retryable: true, reason: "unreachable", cause });
}

export function isLeaseGone(error: unknown): boolean {
  return says(error, NO_LEASE);
}

export function isOutOfSpace(error: unknown): boolean {
  return says(error, NO_SPACE);
}

export function isStaleToken(error: unknown): boolean {
  return says(error, STALE_TOKEN);
}

export function isMalformed(error: unknown): boolean {
  return says(error, /^malformed$/);
}

/**
 * The same failure with effect "none", for a request before the one that counts. A malformed answer
 * proves nothing, so its effect stays unknown.
 */
export function withoutEffect(error: unknown): unknown {
  if (!(error instanceof EngineError) || error.effect === "none" || isMalformed(error))
    return error;
  const { message, retryable, reason } = error;
  return new EngineError(message, { effect: "none", retryable, reason, cause: error });
}

function engineError(
  message: string,
  effect: "none" | "unknown",
  retryable: boolean,
  said: string,
  reason: FailureReason = "other",
): EngineError {
  return new EngineError(message, { effect, retryable, reason, cause: new Error(said) });
}

function says(error: unknown, pattern: RegExp): boolean {
  return (
    error instanceof EngineError &&
    error.cause instanceof Error &&
    pattern.test(error.cause.message)
  );
}

/**
 * The answer for one of a batch. An error that is not a failure of etcd is a defect, and is thrown.
 */
export function failedRequest(error: unknown): Failed {
  if (!(error instanceof EngineError)) throw error;
  return failed(error);
}
