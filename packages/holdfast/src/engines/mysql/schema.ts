import { EngineError } from "../../errors.js";
import { type MysqlCallbackPool, type MysqlPool, poolOf } from "./client.js";
import { isMissing } from "./failure.js";
import { MYSQL_DEFAULTS, resolveMysql } from "./options.js";
import { sql } from "./sql.gen.js";

/** Of tables and routines. Raised when they change; version.sql says the same. */
export const SCHEMA_VERSION = 1;

const CREATION_LOCK_S = 60;
// Last, so that whoever finds it finds everything.
const LAST = "version";

/** Texts are written for the prefix `holdfast_`; another one takes its place. */
export function withPrefix(text: string, prefix: string): string {
  return text.replace(/\bholdfast_/g, prefix);
}

/** Creates tables and routines in the pool's database, or brings older ones up to date. */
export async function createSchema(
  client: MysqlPool | MysqlCallbackPool,
  { prefix = MYSQL_DEFAULTS.prefix }: { readonly prefix?: string } = {},
): Promise<void> {
  resolveMysql({ prefix });
  const session = await poolOf(client).getConnection();
  const lock = `'${prefix}schema'`;
  try {
    // Two that create at the same time would trip over each other.
    await session.query(`SELECT GET_LOCK(${lock}, ${CREATION_LOCK_S})`);
    if ((await versionOf((text) => session.query(text), prefix)) === SCHEMA_VERSION) return;
    // A routine keeps the mode in which it was made.
    await session.query("SET @mode = @@SESSION.sql_mode, SESSION sql_mode = 'STRICT_ALL_TABLES'");
    for (const text of statements(prefix)) await session.query(text);
    await session.query("SET SESSION sql_mode = @mode");
  } finally {
    await session.query(`SELECT RELEASE_LOCK(${lock})`).catch(() => {});
    session.release();
  }
}

function statements(prefix: string): string[] {
  const { tables, version, ...rest } = sql;
  const routines = [...Object.values(rest), version].flatMap((text) => {
    const [, kind, name] = /^CREATE (FUNCTION|PROCEDURE) (\w+)/m.exec(text) ?? [];
    return [`DROP ${kind} IF EXISTS ${name}`, text];
  });
  const first = `DROP PROCEDURE IF EXISTS holdfast_${LAST}`;
  const all = [first, ...tables.split("-- next\n"), ...routines];
  return all.map((text) => withPrefix(text, prefix));
}

async function versionOf(
  query: (text: string) => Promise<readonly [unknown, unknown]>,
  prefix: string,
): Promise<number | null> {
  try {
    const [results] = await query(`CALL ${prefix}version()`);
    const [row] = (results as readonly (readonly object[])[])[0] ?? [];
    return Number(Object.values(row ?? {})[0]);
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

/** Throws, with the call that helps, unless the tables are there and of this version. */
export async function checkSchema(
  call: (text: string) => Promise<unknown[]>,
  prefix: string,
): Promise<void> {
  let found: number | null = null;
  try {
    found = Number((await call(`CALL ${prefix}version()`))[0]);
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
  if (found === SCHEMA_VERSION) return;
  const name = prefix === MYSQL_DEFAULTS.prefix ? "" : `, { prefix: "${prefix}" }`;
  const create = `createSchema(client${name}) from "holdfast/mysql"`;
  const message =
    found === null
      ? `this database has no tables "${prefix}…" for locks. Call ${create} once, as a user that may create them`
      : found < SCHEMA_VERSION
        ? `tables "${prefix}…" are of version ${found}, and ${SCHEMA_VERSION} is needed. Call ${create}`
        : `tables "${prefix}…" are of version ${found}, and this holdfast knows ${SCHEMA_VERSION}. Update holdfast`;
  throw new EngineError(message, { effect: "none", retryable: false });
}
