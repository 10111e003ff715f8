import type { Failed } from "../../../engine.js";
import { EngineError, type FailureReason, HoldfastError } from "../../../errors.js";
import { clientError } from "./client-error.js";
import { isTagged } from "./shape.js";

type Refusal = readonly [pattern: RegExp, says: string, retryable: boolean, reason?: FailureReason];

/** Errors of the server that mean: it did not run the command. */
const REFUSALS: readonly Refusal[] = [
  [/\bOOM\b/, "Redis is out of memory (maxmemory) and refuses to write", true],
  [/\bBUSY\b/, "Redis is busy with another script", true],
  [/\bREADONLY\b/, "this Redis is a replica and cannot be written to", true],
  [/\bLOADING\b/, "Redis is still loading its data", true],
  [/\bMASTERDOWN\b/, "this Redis is a replica without its primary", true],
  [/\bCLUSTERDOWN\b/, "the Redis Cluster is down", true],
  [/\b(TRYAGAIN|MOVED|ASK)\b/, "the Redis Cluster is moving this resource to another node", true],
  [/\bMISCONF\b/, "Redis refuses to write because it cannot save (MISCONF)", true],
  [/\bNOREPLICAS\b/, "Redis refuses to write without enough replicas", true],
  [/\bNOAUTH\b/, "Redis wants a user name and password, and got none", false, "credentials"],
  [
    /\bWRONGPASS\b|\bERR invalid password/,
    "Redis does not accept this user name and password",
    ...([false, "credentials"] as const),
  ],
  [/\bDB index is out of range/, "Redis has no such database", false, "no-database"],
  [
    /\bNOPERM\b|user executing the script can't|ACL failure in script/,
    "this Redis user may not do what locks need; docs/engines/redis.md of the package holdfast lists it",
    ...([false, "rights"] as const),
  ],
  [/\bWRONGTYPE\b/, "a key of this resource holds something that is not a lock", false],
];

/**
 * A refusal has no effect. After any other error, above all a lost connection, the command may have
 * run: clients cannot know, and some of them send unanswered commands again.
 */
export function explain(error: unknown): HoldfastError {
  if (error instanceof HoldfastError) return error;
  const cause = clientError(error);
  const { message } = cause;
  const refusal = REFUSALS.find(([pattern]) => pattern.test(message));
  if (refusal !== undefined) {
    const [, says, retryable, reason = "other"] = refusal;
    return new EngineError(says, { effect: "none", retryable, reason, cause });
  }
  return new EngineError(`Redis did not answer: ${message}`, {
    ...{ effect: "unknown", retryable: true, reason: "unreachable", cause },
  });
}

/**
 * For a node-redis client that is not open. It does not open by itself, so trying again does not
 * help: the program must open it.
 */
export function notOpen(maker: string): EngineError {
  const [call, close] = ["await client.connect()", "locks.close()"];
  return new EngineError(
    `the client of node-redis (${maker}) is not open: ${call} before locks are used, and close it after ${close}`,
    { effect: "none", retryable: false, reason: "unreachable" },
  );
}

/** The answer of an operation, or an error where the answer says that the operation failed. */
export function outcomeOf(answer: unknown): unknown {
  if (!isTagged(answer, "error", 2) || typeof answer[1] !== "string") return answer;
  return explain(new Error(answer[1]));
}

/**
 * A release or revocation that finds nothing proves nothing: an earlier copy of it may have ended
 * the grant.
 */
export function mayBeFromCopy(operation: string, answer: unknown): boolean {
  return /^(-|release$|revoke$)/.test(operation) && Array.isArray(answer) && answer[0] === "gone";
}

/** The core repeats the call, and knows then that an earlier attempt got no answer. */
export function perhapsSentTwice(): EngineError {
  return new EngineError(
    "the connection to Redis was lost during the call, and the client may have sent it twice",
    { effect: "unknown", retryable: true },
  );
}

export function failed(error: unknown): Failed {
  const known = explain(error);
  const effect = known instanceof EngineError ? known.effect : "unknown";
  return { kind: "failed", effect, error: known };
}

export function isMissingScript(error: unknown): boolean {
  return error instanceof Error && /\bNOSCRIPT\b/.test(error.message);
}

export function isMoving(error: unknown): boolean {
  return error instanceof Error && /^(TRYAGAIN|MOVED|ASK)\b/.test(error.message);
}

export function isForbidden(error: unknown): boolean {
  return error instanceof Error && /\bNOPERM\b/.test(error.message);
}

export function isWrongType(error: Error): boolean {
  return error.cause instanceof Error && /\bWRONGTYPE\b/.test(error.cause.message);
}
