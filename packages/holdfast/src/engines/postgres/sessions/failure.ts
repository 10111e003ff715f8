import { redactedCause, redactedMessage } from "../../../engine-kit/sql/redacted-cause.js";
import { EngineError, type FailureReason, HoldfastError } from "../../../errors.js";

export interface Failure {
  readonly why: "locked" | "conflict" | "other";
  readonly error: HoldfastError;
}

const IN_TRANSACTION =
  "the session is inside somebody else's transaction, which could roll back what is done there";

const LOCKED =
  "another transaction has locked this resource and does not end; if it is yours, end it first";

type Refusal = readonly [pattern: RegExp, says: string, retryable: boolean, reason?: FailureReason];

/** SQLSTATEs with which the server says that nothing was done, and why. */
const REFUSALS: readonly Refusal[] = [
  [/^55P03$/, LOCKED, true],
  [/^40(001|P01)$/, "PostgreSQL rolled this transaction back in favour of another one", true],
  [/^2D000$/, IN_TRANSACTION, true],
  [/^25P02$/, "a transaction is open on this session and has failed; it must be rolled back", true],
  [/^57P03$/, "PostgreSQL is starting up or shutting down", true],
  [/^57014$/, "the statement was cancelled (statement_timeout, or by hand)", true],
  [/^53300$/, "PostgreSQL has no connection left (max_connections)", true],
  [/^53/, "PostgreSQL is out of disk space, memory or another resource", true],
  [/^25006$/, "this PostgreSQL is a replica, or read-only, and cannot be written to", true],
  [/^28/, "PostgreSQL wants another user name or password", false, "credentials"],
  [/^22001$/, "the name does not fit into its column; ShedLock's takes 64 characters", false],
  [/^3D000$/, "there is no such database", false, "no-database"],
  [
    /^42501$/,
    "this PostgreSQL user may not do what locks need; docs/engines/postgres.md of the package holdfast lists it",
    ...([false, "rights"] as const),
  ],
];

// pg's pool says this when a caller waited too long for a session. A failed connection has another
// message.
const POOL_EXHAUSTED = /^timeout exceeded when trying to connect$/;
// A server of another kind reads the first packet as the beginning of a longer one and waits for
// the rest, or its answer is no packet of PostgreSQL's.
const PERHAPS_ANOTHER_KIND = /connection timeout|^Received unexpected|Unexpected.* message/i;
const NO_PASSWORD = /client password must be/;

// The session was ended from outside, perhaps after the commit. 40003 means that the server does
// not know.
const UNKNOWN = /^(08|57P01|57P02|57P05|40003)/;

/**
 * An error from the server aborts its transaction, so nothing was done. After any other error,
 * above all a lost connection, the statement may have been carried out.
 */
export function failureOf(error: unknown): Failure {
  if (error instanceof HoldfastError) return { why: "other", error };
  const { code, severity } = error as { code?: string; severity?: string };
  const message = redactedMessage(error);
  const state = severity === undefined ? "" : (code ?? "");
  if (state === "" || UNKNOWN.test(state))
    return { why: "other", error: lost(message, redactedCause(error)) };
  const refusal = REFUSALS.find(([pattern]) => pattern.test(state));
  const why = state === "55P03" ? "locked" : /^40/.test(state) ? "conflict" : "other";
  const says = refusal?.[1] ?? `PostgreSQL refused: ${message}`;
  const [, , retryable = false, reason = "other"] = refusal ?? [];
  const cause = redactedCause(error);
  // Only the server knows which right is missing, and on which object.
  const whole = reason === "rights" ? `${says} (PostgreSQL says: ${redactedMessage(error)})` : says;
  return { why, error: new EngineError(whole, { effect: "none", retryable, reason, cause }) };
}

/** Whether the schema, a table or a function does not exist. */
export function isMissing(error: unknown): boolean {
  const code = (error as { code?: string } | null)?.code ?? "";
  return /^(3F000|42883|42P01)$/.test(code);
}

/** Whether a prepared statement no longer exists or no longer fits. */
export function isStatementForgotten(error: unknown): boolean {
  return /^(26000|0A000)$/.test((error as { code?: string } | null)?.code ?? "");
}

/** Whether the session has an open transaction, which this call must not join. */
export function isInTransaction(error: unknown): boolean {
  return /^(2D000|25P02)$/.test((error as { code?: string } | null)?.code ?? "");
}

export function inTransaction(): EngineError {
  return new EngineError(IN_TRANSACTION, { effect: "none", retryable: true });
}

export function notConnected(error: unknown): HoldfastError {
  const { error: known } = failureOf(error);
  if (known instanceof EngineError && known.effect === "none") return known;
  const cause = redactedCause(error);
  // pg reports this itself, before the server can.
  if (NO_PASSWORD.test(cause.message)) {
    return new EngineError("PostgreSQL wants a password for this user name, and got none", {
      ...{ effect: "none", retryable: false, reason: "credentials", cause },
    });
  }
  if (POOL_EXHAUSTED.test(cause.message)) {
    return new EngineError("all connections of the pool were in use; nothing was sent", {
      ...{ effect: "none", retryable: true, cause },
    });
  }
  const hint = PERHAPS_ANOTHER_KIND.test(cause.message) ? "; perhaps this is no PostgreSQL" : "";
  return new EngineError(`no connection to PostgreSQL: ${cause.message}${hint}`, {
    ...{ effect: "none", retryable: true, reason: "unreachable", cause },
  });
}

export function lost(message: string, cause?: unknown): EngineError {
  return new EngineError(`PostgreSQL did not answer: ${message}`, {
    ...{ effect: "unknown", retryable: true, reason: "unreachable", cause },
  });
}
