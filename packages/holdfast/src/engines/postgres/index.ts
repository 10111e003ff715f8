import { refuseForeign } from "../../core/input/known-options.js";
import type { Engine } from "../../engine.js";
import { UsageError } from "../../errors.js";
import type { EngineUrl } from "../../url.js";
import { AdvisoryEngine } from "./advisory/advisory-engine.js";
import { PostgresEngine } from "./engine.js";
import {
  checkClient,
  OPTIONS,
  type PostgresEngineOptions,
  type PostgresTerms,
  resolvePostgres,
  termsFromUrl,
} from "./options.js";
import { ensureSchema } from "./schema.js";
import { isPool, type PgClient, type PgPool } from "./sessions/client.js";
import { openFromUrl } from "./sessions/open.js";

export { POSTGRES_DEFAULTS, type PostgresEngineOptions, type PostgresHold } from "./options.js";
export { init, type SchemaOptions } from "./schema.js";
export type { PgClient, PgPool, PgPoolClient, PgResult } from "./sessions/client.js";
export {
  type ClaimHereOptions,
  claimInTransaction,
  fenceInTransaction,
  type TransactionClaim,
  type TransactionOptions,
} from "./transaction.js";

const CONNECTIONS = 4;
const OPEN_LIMIT_MS = 5_000;

/** Locks in a PostgreSQL, through a Pool or Client of pg that you made. */
export function postgresEngine(options: PostgresEngineOptions): Engine {
  const isOne = (given: object) => "query" in given;
  refuseForeign(options, OPTIONS, "postgresEngine", { option: "client", isOne });
  const { client, ...rest } = options;
  const terms = resolvePostgres(rest);
  checkClient(client);
  return engineOn(client, terms);
}

export async function postgresFromUrl(url: EngineUrl): Promise<Engine> {
  const terms = termsFromUrl(url);
  const { pool, close } = await openFromUrl(url, CONNECTIONS);
  const engine = engineOn(pool, terms, close);
  try {
    await engine.open(OPEN_LIMIT_MS);
    return engine;
  } catch (error) {
    await engine.close();
    throw error;
  }
}

/**
 * Creates the tables and routines that a URL's engine needs. Returns whether there was anything to
 * do.
 */
export async function initPostgres(url: EngineUrl): Promise<boolean> {
  const { schema, hold } = termsFromUrl(url);
  const { pool, close } = await openFromUrl(url, 1);
  try {
    return await ensureSchema(pool, {
      schema,
      ...(hold === "shedlock" ? { shedlock: "shedlock" } : {}),
    });
  } finally {
    await close();
  }
}

function engineOn(client: PgPool | PgClient, terms: PostgresTerms, end?: () => unknown) {
  if (terms.hold !== "advisory") return new PostgresEngine(client, terms, end);
  if (isPool(client)) return new AdvisoryEngine(client, terms, end);
  throw new UsageError('hold: "advisory" needs a Pool, because its locks need a dedicated session');
}
