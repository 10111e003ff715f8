import { type Known, refuseUnknown } from "../../core/input/known-options.js";
import { sleep, systemClock } from "../../core/runtime/clock.js";
import { count } from "../../engine-kit/sql/shape.js";
import { EngineError, UsageError } from "../../errors.js";
import { answerOf } from "./decode.js";
import { MYSQL_DEFAULTS, type MysqlHold, resolveMysql, SHEDLOCK_PREFIX } from "./options.js";
import {
  type MysqlCallbackPool,
  type MysqlConnection,
  type MysqlPool,
  poolOf,
} from "./sessions/client.js";
import { failureOf, isForbidden, isMissing } from "./sessions/failure.js";
import { sql } from "./sql.gen.js";

/**
 * The version of tables and routines. Raise it when they change; version.sql returns the same
 * number.
 */
export const SCHEMA_VERSION = 7;

const INIT_LOCK_S = 60;
// While a dump or a long transaction reads the tables: how often to try, and how long to pause in
// between.
const INIT_TRIES = 30;
const INIT_PAUSE_MS = 1_000;
const [LOCKED, DEADLOCK] = [1205, 1213];
// Created last: if it exists, everything exists.
const LAST = "version";

/** The SQL files are written for the prefix `holdfast_`; this puts another one in its place. */
export function withPrefix(text: string, prefix: string): string {
  return text.replace(/\bholdfast_/g, prefix);
}

export interface SchemaOptions {
  readonly prefix?: string;
  /**
   * The name of ShedLock's table, for engines with hold: "shedlock". It is created if it does not
   * exist.
   */
  readonly shedlock?: string;
}

const OPTIONS: Known<SchemaOptions> = { prefix: true, shedlock: true };

/** Creates tables and routines in the pool's database, or updates older ones. */
export async function init(
  client: MysqlPool | MysqlCallbackPool,
  options: SchemaOptions = {},
): Promise<void> {
  await ensureSchema(client, options);
}

/** Like init; returns whether there was anything to do. */
export async function ensureSchema(
  client: MysqlPool | MysqlCallbackPool,
  options: SchemaOptions,
): Promise<boolean> {
  refuseUnknown(options, OPTIONS, "init");
  const { shedlock, ...rest } = options;
  const hold = shedlock === undefined ? "rows" : "shedlock";
  const { prefix } = resolveMysql({ ...rest, hold });
  const foreign = shedlock === undefined ? sql.foreignNone : foreignRoutines(shedlock);
  const session = await poolOf(client).getConnection();
  const lock = `'${prefix}schema'`;
  try {
    // Two concurrent calls of init would fail on each other's changes.
    await session.query(`SELECT GET_LOCK(${lock}, ${INIT_LOCK_S})`);
    const found = await versionOf((text) => session.query(text), prefix, hold);
    if (found === SCHEMA_VERSION) return false;
    if (found !== null && found > SCHEMA_VERSION) throw tooNew(prefix, found);
    // A routine keeps the sql_mode in which it was created. A change of a table waits for its
    // readers, and everybody else queues behind it; so it must not wait for long.
    await session.query(`SET @mode = @@SESSION.sql_mode, @wait = @@SESSION.lock_wait_timeout,
      SESSION sql_mode = 'STRICT_ALL_TABLES', SESSION lock_wait_timeout = 1`);
    try {
      for (const text of statements(prefix, foreign)) await retryWhileLocked(session, text);
      return true;
    } catch (error) {
      const { error: known } = failureOf(error);
      // The server's error is more detailed, but this one says what it means.
      throw known instanceof EngineError && known.effect === "none" ? known : error;
    } finally {
      const before = "SESSION sql_mode = @mode, SESSION lock_wait_timeout = @wait";
      await session.query(`SET ${before}`).catch(() => {});
    }
  } finally {
    await session.query(`SELECT RELEASE_LOCK(${lock})`).catch(() => {});
    session.release();
  }
}

/** Each statement can be repeated: what it creates exists already, or is created anew. */
async function retryWhileLocked(session: MysqlConnection, text: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await session.query(text);
      return;
    } catch (error) {
      const number = (error as { errno?: number }).errno;
      if ((number !== LOCKED && number !== DEADLOCK) || attempt === INIT_TRIES) throw error;
      await sleep(systemClock, INIT_PAUSE_MS, undefined);
    }
  }
}

function statements(prefix: string, foreign: string): string[] {
  const { tables, version, foreignNone: _, foreignShedlock: __, ...rest } = sql;
  const texts = [foreign, ...Object.values(rest), version].flatMap((text) =>
    text.split("-- next\n"),
  );
  const routines = texts.flatMap((text) => {
    const [, kind, name] = /^CREATE (FUNCTION|PROCEDURE) (\w+)/m.exec(text) ?? [];
    return kind === undefined ? [text] : [`DROP ${kind} IF EXISTS ${name}`, text];
  });
  const first = `DROP PROCEDURE IF EXISTS holdfast_${LAST}`;
  const all = [first, ...tables.split("-- next\n"), ...routines];
  return all.map((text) => withPrefix(text, prefix));
}

function foreignRoutines(shedlock: string): string {
  if (typeof shedlock === "string" && /^[a-z_][a-z0-9_]{0,63}$/i.test(shedlock)) {
    return sql.foreignShedlock.replaceAll("shedlock_table", `\`${shedlock}\``);
  }
  throw new UsageError(
    `shedlock is ${JSON.stringify(shedlock)}; it must be the name of a table, like "shedlock"`,
  );
}

/** Null if they are missing, or were created for another kind of hold. */
async function versionOf(
  query: (text: string) => Promise<readonly [unknown, unknown]>,
  prefix: string,
  hold: string,
): Promise<number | null> {
  const ask = async (routine: string) => answerOf((await query(`CALL ${prefix}${routine}()`))[0]);
  try {
    const version = count(Number(await ask("version")));
    return (await ask("holds")) === hold ? version : null;
  } catch (error) {
    // A user without rights gets "forbidden" for a missing routine too. If it is missing, the user
    // that creates it may call it.
    if (isMissing(error) || isForbidden(error)) return null;
    throw error;
  }
}

/** Throws, and names the call that helps, unless the tables exist in this version. */
export async function checkSchema(
  call: (text: string) => Promise<unknown>,
  prefix: string,
  hold: MysqlHold,
): Promise<void> {
  let found: number | null = null;
  try {
    found = count(Number(await call(`CALL ${prefix}version()`)));
    if (found === SCHEMA_VERSION && (await call(`CALL ${prefix}holds()`)) !== hold) {
      throw wrongKind(prefix, hold);
    }
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
  if (found === SCHEMA_VERSION) return;
  if (found !== null && found > SCHEMA_VERSION) throw tooNew(prefix, found);
  const create = `init(url) from "holdfast" or ${initCall(prefix, hold)} from "holdfast/mysql"`;
  const message =
    found === null
      ? `this database has no tables "${prefix}…" for locks. Run "npx @holdfast/cli init" with this URL, or call ${create}, once, as a user that may create them`
      : `tables "${prefix}…" are of version ${found}, and ${SCHEMA_VERSION} is needed. Run "npx @holdfast/cli init" with this URL, or call ${create}`;
  throw new EngineError(message, { effect: "none", retryable: false, reason: "not-prepared" });
}

function tooNew(prefix: string, found: number): EngineError {
  return new EngineError(
    `tables "${prefix}…" are of version ${found}, and this holdfast knows ${SCHEMA_VERSION}. Update holdfast`,
    { effect: "none", retryable: false },
  );
}

function initCall(prefix: string, hold: MysqlHold): string {
  const usual = prefix === (hold === "rows" ? MYSQL_DEFAULTS.prefix : SHEDLOCK_PREFIX);
  const options = [
    ...(usual ? [] : [`prefix: "${prefix}"`]),
    ...(hold === "rows" ? [] : ['shedlock: "shedlock"']),
  ].join(", ");
  return options === "" ? "init(client)" : `init(client, { ${options} })`;
}

function wrongKind(prefix: string, hold: MysqlHold): EngineError {
  return new EngineError(
    `tables "${prefix}…" were not made for hold: "${hold}"; use another prefix, made by ` +
      initCall(prefix, hold),
    { effect: "none", retryable: false },
  );
}
