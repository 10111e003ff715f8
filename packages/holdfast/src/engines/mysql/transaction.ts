import { type Known, refuseUnknown } from "../../core/input/known-options.js";
import { redactedCause } from "../../engine-kit/sql/redacted-cause.js";
import { unreadable } from "../../engine-kit/sql/shape.js";
import {
  checkClaimHere,
  claimedHere,
  fencedOut,
  NOT_FOR_SHEDLOCK,
  noTransaction,
  notHere,
  type TransactionClaim,
} from "../../engine-kit/sql/transaction.js";
import { EngineError, kindOf, UsageError } from "../../errors.js";
import { parseSequencer } from "../../fencing/sequencer.js";
import { answerOf } from "./decode.js";
import { MYSQL_DEFAULTS, resolveMysql } from "./options.js";
import { failureOf, isMissing } from "./sessions/failure.js";

export type { TransactionClaim };

export interface TransactionOptions {
  /** The prefix of the names of tables and routines. */
  readonly prefix?: string;
}

export interface ClaimHereOptions extends TransactionOptions {
  /**
   * How long to wait for another transaction that has locked the resource; in whole seconds,
   * rounded up.
   */
  readonly waitMs?: number;
}

/** The part of a connection of mysql2/promise that a transaction needs. */
export interface MysqlTransaction {
  query(text: string): Promise<readonly [unknown, unknown]>;
}

/** A connection of mysql2 with callbacks; promise() gives its promise API. */
export interface MysqlCallbackTransaction {
  promise(): MysqlTransaction;
}

// The savepoint does not exist, because its transaction is already over.
const NO_SAVEPOINT = 1305;

const FENCE: Known<TransactionOptions> = { prefix: true };
const CLAIM: Known<ClaimHereOptions> = { ...FENCE, waitMs: true };

/** Holdfast's own SQLSTATEs, raised when the caller's transaction is unsuitable. */
const REFUSALS: Readonly<Record<string, string>> = {
  "45065": "the clock of this session is frozen; send SET timestamp = DEFAULT on it first",
  "45066": NOT_FOR_SHEDLOCK,
};

/**
 * Inside the caller's transaction: throws FencedOutError unless this sequencer's grant exists.
 * Until the transaction ends nobody can succeed the grant, even if its ttl ends meanwhile. So what
 * is written together with this check is written by the holder. Renewals continue. Release the
 * lease after the commit, not before.
 */
export async function fenceInTransaction(
  connection: MysqlTransaction | MysqlCallbackTransaction,
  sequencer: string,
  options: TransactionOptions = {},
): Promise<void> {
  refuseUnknown(options, FENCE, "fenceInTransaction");
  const { prefix = MYSQL_DEFAULTS.prefix } = options;
  const sequence = parseSequencer(sequencer);
  const { resource, mode, token } = sequence;
  const values = `${literal(resource)}, ${mode === "shared" ? 1 : 0}, ${token}`;
  const grants = String(await ask(connection, prefix, `fence(${values})`));
  if (!/^\d+$/.test(grants)) throw unreadable("a fence says how many grants there are");
  if (Number(grants) === 0) throw fencedOut(sequence, `tables "${prefix}…"`);
}

/**
 * Takes the resource until the caller's transaction ends: lock and data commit together, or
 * neither does. Null if somebody holds the resource, waits for it, or has locked it in another
 * transaction. Others get the answer busy, so keep such transactions short. The token is rolled
 * back with the transaction, so send it nowhere before the commit.
 */
export async function claimInTransaction(
  connection: MysqlTransaction | MysqlCallbackTransaction,
  resource: string,
  options: ClaimHereOptions = {},
): Promise<TransactionClaim | null> {
  refuseUnknown(options, CLAIM, "claimInTransaction");
  const { prefix = MYSQL_DEFAULTS.prefix, waitMs = 1_000 } = options;
  checkClaimHere(resource, waitMs);
  const seconds = Math.ceil(waitMs / 1_000);
  const answer = await ask(connection, prefix, `claim_here(${literal(resource)}, ${seconds})`);
  return claimedHere(resource, answer);
}

async function ask(
  connection: MysqlTransaction | MysqlCallbackTransaction,
  prefix: string,
  call: string,
): Promise<unknown> {
  resolveMysql({ prefix });
  const usable = typeof connection === "object" && connection !== null;
  if (!usable || !("query" in connection || "promise" in connection)) {
    throw new UsageError(`this must be a connection of mysql2, got ${kindOf(connection)}`);
  }
  if ("getConnection" in connection) {
    throw new UsageError("a pool has no transaction; give the connection on which you began one");
  }
  const session = "promise" in connection ? connection.promise() : connection;
  await refuseWithoutTransaction(session);
  try {
    const [results] = await session.query(`CALL ${prefix}${call}`);
    return answerOf(results);
  } catch (error) {
    await restoreSettings(session, prefix);
    const refusal = REFUSALS[(error as { sqlState?: string }).sqlState ?? ""];
    if (refusal !== undefined) throw new UsageError(refusal);
    if (isMissing(error)) {
      throw notHere(`tables "${prefix}…" for locks`, redactedCause(error));
    }
    const failure = failureOf(error).error;
    throw failure instanceof EngineError ? failure : error;
  }
}

/**
 * Restores what a routine had set when it failed or was killed. The session is the caller's and is
 * used again.
 */
async function restoreSettings(session: MysqlTransaction, prefix: string): Promise<void> {
  const put = (setting: string, before: string, value: string) =>
    `${setting} = ${value}, ${before} = NULL`;
  const [limit, waited] = ["@@SESSION.innodb_lock_wait_timeout", `@${prefix}lock_wait`];
  const wait = put(limit, waited, `COALESCE(CAST(${waited} AS UNSIGNED), ${limit})`);
  // A boolean setting: MariaDB accepts 1 and 0 for it, but not the result of a cast.
  const [level, was] = ["@@SESSION.innodb_snapshot_isolation", `@${prefix}snapshot`];
  const snapshot = put(level, was, `IF(COALESCE(${was}, ${level}), 1, 0)`);
  // A lost session needs nothing restored.
  await session.query(`SET ${wait} /*M!110602 , ${snapshot} */`).catch(() => {});
}

async function refuseWithoutTransaction(session: MysqlTransaction): Promise<void> {
  try {
    await session.query("SAVEPOINT holdfast");
    await session.query("RELEASE SAVEPOINT holdfast");
  } catch (error) {
    if ((error as { errno?: number }).errno !== NO_SAVEPOINT) throw failureOf(error).error;
    throw noTransaction("START TRANSACTION");
  }
}

/** Hexadecimal digits need no quoting in any sql_mode. */
function literal(value: string): string {
  return `X'${Buffer.from(value).toString("hex")}'`;
}
