import type { Engine } from "../../engine.js";
import type { EngineUrl } from "../../url.js";
import { PostgresEngine } from "./engine.js";
import { openFromUrl } from "./open.js";
import {
  checkClient,
  type PostgresEngineOptions,
  resolvePostgres,
  termsFromUrl,
} from "./options.js";

export type { PgClient, PgPool, PgPoolClient, PgResult } from "./client.js";
export { POSTGRES_DEFAULTS, type PostgresEngineOptions } from "./options.js";
export { createSchema } from "./schema.js";
export {
  type ClaimHereOptions,
  claimInTransaction,
  fenceInTransaction,
  type TransactionClaim,
  type TransactionOptions,
} from "./transaction.js";

const CONNECTIONS = 4;
const OPEN_LIMIT_MS = 5_000;

/** Locks in the rows of a PostgreSQL, through a Pool or Client of pg that you made. */
export function postgresEngine({ client, ...options }: PostgresEngineOptions): Engine {
  checkClient(client);
  return new PostgresEngine(client, resolvePostgres(options));
}

export async function postgresFromUrl(url: EngineUrl): Promise<Engine> {
  const terms = termsFromUrl(url);
  const { pool, close } = await openFromUrl(url, CONNECTIONS);
  const engine = new PostgresEngine(pool, terms, close);
  try {
    await engine.open(OPEN_LIMIT_MS);
    return engine;
  } catch (error) {
    await engine.close();
    throw error;
  }
}
