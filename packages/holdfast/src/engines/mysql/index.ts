import { refuseForeign } from "../../core/input/known-options.js";
import type { Engine } from "../../engine.js";
import type { EngineUrl } from "../../url.js";
import { MysqlEngine } from "./engine.js";
import { type MysqlEngineOptions, OPTIONS, resolveMysql, termsFromUrl } from "./options.js";
import { ensureSchema } from "./schema.js";
import { poolOf } from "./sessions/client.js";
import { openFromUrl } from "./sessions/open.js";

export { MYSQL_DEFAULTS, type MysqlEngineOptions, type MysqlHold } from "./options.js";
export { init, type SchemaOptions } from "./schema.js";
export type { MysqlCallbackPool, MysqlConnection, MysqlPool } from "./sessions/client.js";
export {
  type ClaimHereOptions,
  claimInTransaction,
  fenceInTransaction,
  type MysqlCallbackTransaction,
  type MysqlTransaction,
  type TransactionClaim,
  type TransactionOptions,
} from "./transaction.js";

const CONNECTIONS = 4;
const OPEN_LIMIT_MS = 5_000;

/** Locks in the rows of a MySQL or MariaDB, through a pool of mysql2 that you made. */
export function mysqlEngine(options: MysqlEngineOptions): Engine {
  const isOne = (given: object) => "query" in given || "getConnection" in given;
  refuseForeign(options, OPTIONS, "mysqlEngine", { option: "client", isOne });
  const { client, ...rest } = options;
  const terms = resolveMysql(rest);
  return new MysqlEngine(poolOf(client), terms);
}

export async function mysqlFromUrl(url: EngineUrl): Promise<Engine> {
  const terms = termsFromUrl(url);
  const { pool, unrefConnections, close } = await openFromUrl(url, CONNECTIONS);
  const engine = new MysqlEngine(pool, terms, close);
  try {
    await engine.open(OPEN_LIMIT_MS);
    unrefConnections();
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
export async function initMysql(url: EngineUrl): Promise<boolean> {
  const { prefix, hold } = termsFromUrl(url);
  const { pool, close } = await openFromUrl(url, 1);
  try {
    return await ensureSchema(pool, {
      prefix,
      ...(hold === "shedlock" ? { shedlock: "shedlock" } : {}),
    });
  } finally {
    await close();
  }
}
