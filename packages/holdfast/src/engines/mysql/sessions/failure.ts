import { redactedCause, redactedMessage } from "../../../engine-kit/sql/redacted-cause.js";
import { EngineError, type FailureReason, HoldfastError } from "../../../errors.js";

export interface Failure {
  readonly why: "locked" | "conflict" | "other";
  readonly error: HoldfastError;
}

const LOCKED = 1205;
const CONFLICTS = [1213, 1020];
// Routines set their isolation level first, and a session with an open transaction refuses that.
const IN_TRANSACTION = 1568;
const MISSING = [1305, 1146, 1049];
const FORBIDDEN = 1370;

const LOCKED_ROW =
  "another transaction has locked this resource and does not end; if it is yours, end it first";

// MySQL speaks first. A server of another kind waits for us, until the time to connect is over.
const PERHAPS_ANOTHER_KIND = /\bETIMEDOUT\b|packet/i;
// mysql2's pool says this if it is configured with waitForConnections: false or a queueLimit.
const POOL_EXHAUSTED = /^(No connections available|Queue limit reached)\.$/;

type Refusal = readonly [
  numbers: readonly number[],
  says: string,
  retryable: boolean,
  reason?: FailureReason,
];

/** Error numbers with which the server says that nothing was done, and why. */
const REFUSALS: readonly Refusal[] = [
  [[LOCKED], LOCKED_ROW, true],
  [CONFLICTS, "the database rolled this transaction back in favour of another one", true],
  [[IN_TRANSACTION], "a session was returned to the pool with its transaction still open", true],
  [[1040, 1203, 1226], "the database has no connection left for this user", true],
  [[1290, 1792, 1836], "this database is read-only and cannot be written to", true],
  [[1021, 1114], "the database is out of disk space", true],
  [[1045, 1698], "the database wants another user name or password", false, "credentials"],
  [[1644, 1406], "the name does not fit into its column; ShedLock's takes 64 characters", false],
  [[1049], "there is no such database", false, "no-database"],
  [
    [1418, 1419],
    "this server has a binary log, so only a user with SUPER may create functions, unless the server is started with log_bin_trust_function_creators = 1",
    false,
  ],
  [
    [1665],
    "this server's binlog_format is STATEMENT, in which it refuses READ COMMITTED; set ROW or MIXED",
    false,
  ],
  [
    [1044, 1142, 1143, 1227, FORBIDDEN],
    "this database user may not do what locks need; docs/engines/mysql.md of the package holdfast lists it",
    ...([false, "rights"] as const),
  ],
];

/**
 * A failed routine has rolled back. A kill of the session or the statement may have come after the
 * commit. After any other error, above all a lost connection, the call may have been carried out.
 */
export function failureOf(error: unknown): Failure {
  if (error instanceof HoldfastError) return { why: "other", error };
  const number = numberOf(error);
  const refusal = REFUSALS.find(([numbers]) => numbers.includes(number));
  const why = number === LOCKED ? "locked" : CONFLICTS.includes(number) ? "conflict" : "other";
  if (refusal === undefined)
    return { why, error: lost(redactedMessage(error), redactedCause(error)) };
  const [, says, retryable, reason = "other"] = refusal;
  const cause = redactedCause(error);
  // Only the server knows which right is missing, and on which object.
  const whole =
    reason === "rights" ? `${says} (the database says: ${redactedMessage(error)})` : says;
  return { why, error: new EngineError(whole, { effect: "none", retryable, reason, cause }) };
}

/** Whether a table or routine does not exist. */
export function isMissing(error: unknown): boolean {
  return MISSING.includes(numberOf(error));
}

/** Whether this user may not call the routine, if it exists. */
export function isForbidden(error: unknown): boolean {
  return numberOf(error) === FORBIDDEN;
}

/**
 * Whether the session is usable after this error. Any other error may have left a transaction open.
 */
export function leavesSessionUsable(error: unknown): boolean {
  return [LOCKED, ...CONFLICTS, ...MISSING, FORBIDDEN, 1644].includes(numberOf(error));
}

export function notConnected(error: unknown): HoldfastError {
  const { error: known } = failureOf(error);
  if (known instanceof EngineError && known.effect === "none") return known;
  if (POOL_EXHAUSTED.test(redactedMessage(error))) {
    return new EngineError("all connections of the pool were in use; nothing was sent", {
      ...{ effect: "none", retryable: true, cause: redactedCause(error) },
    });
  }
  const message = redactedMessage(error);
  const hint = PERHAPS_ANOTHER_KIND.test(message) ? "; perhaps this is no MySQL or MariaDB" : "";
  return new EngineError(`no connection to the database: ${message}${hint}`, {
    ...{ effect: "none", retryable: true, reason: "unreachable", cause: redactedCause(error) },
  });
}

export function lost(message: string, cause?: unknown): EngineError {
  return new EngineError(`the database did not answer: ${message}`, {
    ...{ effect: "unknown", retryable: true, reason: "unreachable", cause },
  });
}

function numberOf(error: unknown): number {
  return (error as { errno?: number } | null)?.errno ?? 0;
}
