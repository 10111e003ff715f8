import { type Known, refuseUnknown } from "../../core/input/known-options.js";
import { sleep, systemClock } from "../../core/runtime/clock.js";
import { EngineError, UsageError } from "../../errors.js";
import { checkSession, POSTGRES_DEFAULTS, resolvePostgres, SHEDLOCK_SCHEMA } from "./options.js";
import {
  borrow,
  isPool,
  type PgClient,
  type PgPool,
  type PgPoolClient,
  refuseUnconnected,
  returnSession,
} from "./sessions/client.js";
import { failureOf, isMissing } from "./sessions/failure.js";
import { sql } from "./sql.gen.js";

/**
 * The version of tables and routines. Raise it when they change; `version()` in entry-points.sql
 * returns the same number.
 */
export const SCHEMA_VERSION = 7;

// The tables come first. The other files run in the order of their names, which matters once:
// drop-old-routines.sql must run before promote.sql, which recreates promote() and let_in() with
// another result.
const { tables, foreignNone, foreignShedlock, ...ROUTINES } = sql;
// Two concurrent calls of init would fail on each other's changes.
const INIT_LOCK = 0x686f6c64;
const INIT_MS = 60_000;
const INIT_WAIT_MS = 200;
const INIT_PAUSE_MS = 1_000;

/** The SQL files are written for the schema `holdfast`; this puts another name in its place. */
export function inSchema(text: string, schema: string): string {
  return text.replace(/\bholdfast\b/g, `"${schema}"`);
}

export interface SchemaOptions {
  readonly schema?: string;
  /**
   * The name of ShedLock's table, for engines with hold: "shedlock". It is created if it does not
   * exist.
   */
  readonly shedlock?: string;
}

const OPTIONS: Known<SchemaOptions> = { schema: true, shedlock: true };

/**
 * Creates the schema with its tables and routines, or updates older ones. Users of the locks wait
 * for a moment at most, even while a dump or a long transaction reads the tables.
 */
export async function init(client: PgPool | PgClient, options: SchemaOptions = {}): Promise<void> {
  await ensureSchema(client, options);
}

/** Like init; returns whether there was anything to do. */
export async function ensureSchema(
  client: PgPool | PgClient,
  options: SchemaOptions,
): Promise<boolean> {
  refuseUnknown(options, OPTIONS, "init");
  const { shedlock, ...rest } = options;
  const hold = shedlock === undefined ? "rows" : "shedlock";
  const { schema } = resolvePostgres({ ...rest, hold });
  checkSession(client);
  if (!isPool(client)) refuseUnconnected(client);
  const session = isPool(client) ? await borrow(client) : client;
  const deadline = systemClock.now() + INIT_MS;
  try {
    const { rows } = await session.query("SELECT current_schema() AS here");
    const table = shedlock === undefined ? null : quoted(shedlock, rows[0].here);
    if (table !== null) await refuseZoned(session, table);
    const script = scriptFor(schema, table);
    while (!(await isUpToDate(session, schema, table))) {
      const made = await create(session, schema, script, table);
      if (made !== "locked") return made === "created";
      if (systemClock.now() >= deadline) throw inUse(schema);
      await sleep(systemClock, INIT_PAUSE_MS, undefined);
    }
    return false;
  } catch (error) {
    const { error: known } = failureOf(error);
    // The server's error is more detailed, but this one says what it means.
    throw known instanceof EngineError && known.effect === "none" ? known : error;
  } finally {
    if ("release" in session) returnSession(session as PgPoolClient);
  }
}

function scriptFor(schema: string, table: string | null): string {
  const foreign =
    table === null ? foreignNone : foreignShedlock.replaceAll("shedlock_table", table);
  const texts = [tables, foreign, ...Object.values(ROUTINES)];
  return texts.map((text) => inSchema(text, schema)).join("\n");
}

/**
 * "there" if another program made everything while this one waited for it. "locked" while somebody
 * reads the tables. Changing them needs a lock that waits for every reader,
 * and all other statements queue behind that lock. So this gives up soon, and lets them through
 * before it tries again.
 */
async function create(
  session: PgClient,
  schema: string,
  script: string,
  table: string | null,
): Promise<"created" | "there" | "locked"> {
  try {
    // An older snapshot would not show what the other program has made.
    await session.query(`
      BEGIN ISOLATION LEVEL READ COMMITTED;
      SELECT pg_advisory_xact_lock(${INIT_LOCK})`);
    if (await isUpToDate(session, schema, table)) {
      await session.query("ROLLBACK");
      return "there";
    }
    await session.query(`
      SET LOCAL lock_timeout = ${INIT_WAIT_MS};
      SET LOCAL check_function_bodies = off;
      SET LOCAL client_min_messages = warning;
      CREATE SCHEMA IF NOT EXISTS "${schema}";
      ${script}
      REVOKE ALL ON ALL FUNCTIONS IN SCHEMA "${schema}" FROM PUBLIC;
      GRANT EXECUTE ON ALL PROCEDURES IN SCHEMA "${schema}" TO PUBLIC;
      COMMIT`);
    return "created";
  } catch (error) {
    await session.query("ROLLBACK").catch(() => {});
    if (failureOf(error).why === "locked") return "locked";
    throw error;
  }
}

/**
 * Whether everything exists, in this version, and for this table of ShedLock's. Reads the
 * catalogue, which every user may read: a program without other rights can check at its start.
 */
async function isUpToDate(
  session: PgClient,
  schema: string,
  table: string | null,
): Promise<boolean> {
  const { rows } = await session.query(
    `SELECT proname AS name, prosrc AS source FROM pg_proc
      WHERE pronamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1)
        AND proname IN ('version', 'holds', 'foreign_free')`,
    [schema],
  );
  const sources = new Map<string, string>(rows.map(({ name, source }) => [name, source]));
  const version = Number(/\d+/.exec(sources.get("version") ?? "")?.[0] ?? 0);
  if (version > SCHEMA_VERSION) throw tooNew(schema, version);
  if (version < SCHEMA_VERSION) return false;
  if (table === null) return sources.get("holds")?.includes("'rows'") === true;
  const { rows: found } = await session.query("SELECT to_regclass($1) IS NOT NULL AS there", [
    table,
  ]);
  return found[0].there && sources.get("foreign_free")?.includes(table) === true;
}

/**
 * ShedLock writes UTC into columns without a time zone. In columns with a zone, the zone of each
 * session would shift what it writes, and two programs in different zones could hold at the same
 * time.
 */
async function refuseZoned(session: PgClient, table: string): Promise<void> {
  const { rows } = await session.query(
    `SELECT attname AS name FROM pg_attribute WHERE attrelid = to_regclass($1)
      AND attname IN ('lock_until', 'locked_at') AND atttypid = 'timestamptz'::regtype`,
    [table],
  );
  if (rows.length === 0) return;
  const names: string[] = rows.map(({ name }) => name);
  const changes = names.map(
    (name) => `ALTER ${name} TYPE timestamp USING ${name} AT TIME ZONE 'utc'`,
  );
  throw new EngineError(
    `${names.join(" and ")} of ${table} ${names.length > 1 ? "are" : "is"} timestamptz, and ShedLock's ` +
      `must be timestamp. Run: ALTER TABLE ${table} ${changes.join(", ")}`,
    { effect: "none", retryable: false },
  );
}

/**
 * "shedlock" or "public.shedlock" with its schema, each part quoted, because the routines have no
 * search path.
 */
function quoted(table: string, here: string): string {
  if (typeof table === "string" && /^[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)?$/i.test(table)) {
    return (table.includes(".") ? table : `${here}.${table}`).replace(/\w+/g, '"$&"');
  }
  throw new UsageError(
    `shedlock is ${JSON.stringify(table)}; it must be the name of a table, like "public.shedlock"`,
  );
}

/**
 * Throws, and names the call that helps, unless the schema exists in this version and for this kind
 * of hold.
 */
export async function checkSchema(
  query: <Row>(text: string, values: unknown[]) => Promise<Row[]>,
  schema: string,
  hold: "rows" | "shedlock" = "rows",
): Promise<void> {
  let found: number | undefined;
  try {
    const text = `SELECT "${schema}".version() AS version, "${schema}".holds() AS holds`;
    const [row] = await query<{ version: number; holds: string }>(text, []);
    found = Number(row?.version);
    if (found === SCHEMA_VERSION && row?.holds !== hold) throw wrongKind(schema, hold);
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
  if (found === SCHEMA_VERSION) return;
  if (found !== undefined && found > SCHEMA_VERSION) throw tooNew(schema, found);
  const create = `init(url) from "holdfast" or ${initCall(schema, hold)} from "holdfast/postgres"`;
  const message =
    found === undefined
      ? `schema "${schema}" has no tables for locks. Run "npx @holdfast/cli init" with this URL, or call ${create}, once, as a user that may create them`
      : `schema "${schema}" is of version ${found}, and ${SCHEMA_VERSION} is needed. Run "npx @holdfast/cli init" with this URL, or call ${create}`;
  throw new EngineError(message, { effect: "none", retryable: false, reason: "not-prepared" });
}

function tooNew(schema: string, found: number): EngineError {
  return new EngineError(
    `schema "${schema}" is of version ${found}, and this holdfast knows ${SCHEMA_VERSION}. Update holdfast`,
    { effect: "none", retryable: false },
  );
}

function inUse(schema: string): EngineError {
  return new EngineError(
    `schema "${schema}" cannot be changed: a dump or a long transaction reads its tables. Try again when that has ended`,
    { effect: "none", retryable: true },
  );
}

function initCall(schema: string, hold: "rows" | "shedlock"): string {
  const usual = schema === (hold === "rows" ? POSTGRES_DEFAULTS.schema : SHEDLOCK_SCHEMA);
  const options = [
    ...(usual ? [] : [`schema: "${schema}"`]),
    ...(hold === "rows" ? [] : ['shedlock: "shedlock"']),
  ].join(", ");
  return options === "" ? "init(client)" : `init(client, { ${options} })`;
}

function wrongKind(schema: string, hold: "rows" | "shedlock"): EngineError {
  return new EngineError(
    `schema "${schema}" was not made for hold: "${hold}"; use another schema, made by ` +
      initCall(schema, hold),
    { effect: "none", retryable: false },
  );
}
