import { EngineError } from "../../errors.js";
import { isPool, type PgClient, type PgPool } from "./client.js";
import { isMissing } from "./failure.js";
import { POSTGRES_DEFAULTS, resolvePostgres } from "./options.js";
import { sql } from "./sql.gen.js";

/** Of tables and routines. Raised when they change; `version()` in doors.sql says the same. */
export const SCHEMA_VERSION = 1;

// Bodies of functions name each other, so tables come first and the order of the rest is free.
const FILES = ["tables", ...Object.keys(sql).filter((name) => name !== "tables")] as const;
// Two that create at the same time would trip over each other.
const CREATION_LOCK = 0x686f6c64;

/** Texts are written for the schema `holdfast`; another name takes its place. */
export function inSchema(text: string, schema: string): string {
  return text.replace(/\bholdfast\b/g, `"${schema}"`);
}

/** Creates the schema, its tables and routines, or brings older ones up to date. */
export async function createSchema(
  client: PgPool | PgClient,
  { schema = POSTGRES_DEFAULTS.schema }: { readonly schema?: string } = {},
): Promise<void> {
  resolvePostgres({ schema });
  const texts = FILES.map((name) => inSchema(sql[name as keyof typeof sql], schema));
  const session = isPool(client) ? await client.connect() : client;
  try {
    await session.query(`
      BEGIN;
      SELECT pg_advisory_xact_lock(${CREATION_LOCK});
      SET LOCAL check_function_bodies = off;
      SET LOCAL client_min_messages = warning;
      CREATE SCHEMA IF NOT EXISTS "${schema}";
      ${texts.join("\n")}
      REVOKE ALL ON ALL FUNCTIONS IN SCHEMA "${schema}" FROM PUBLIC;
      COMMIT`);
  } catch (error) {
    await session.query("ROLLBACK").catch(() => {});
    throw error;
  } finally {
    if ("release" in session) (session as { release(): void }).release();
  }
}

/** Throws, with the call that helps, unless the schema is there and of this version. */
export async function checkSchema(
  query: <Row>(text: string, values: unknown[]) => Promise<Row[]>,
  schema: string,
): Promise<void> {
  let found: number | undefined;
  try {
    const [row] = await query<{ version: number }>(`SELECT "${schema}".version() AS version`, []);
    found = Number(row?.version);
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
  if (found === SCHEMA_VERSION) return;
  const name = schema === POSTGRES_DEFAULTS.schema ? "" : `, { schema: "${schema}" }`;
  const create = `createSchema(client${name}) from "holdfast/postgres"`;
  const message =
    found === undefined
      ? `schema "${schema}" has no tables for locks. Call ${create} once, as a user that may create them`
      : found < SCHEMA_VERSION
        ? `schema "${schema}" is of version ${found}, and ${SCHEMA_VERSION} is needed. Call ${create}`
        : `schema "${schema}" is of version ${found}, and this holdfast knows ${SCHEMA_VERSION}. Update holdfast`;
  throw new EngineError(message, { effect: "none", retryable: false });
}
