import { UsageError } from "../../errors.js";
import { type EngineUrl, refuseUnknownParams } from "../../url.js";
import type { MysqlCallbackPool, MysqlPool } from "./client.js";

export interface MysqlEngineOptions {
  /** A pool of mysql2 or mysql2/promise. It is used and never closed. */
  readonly client: MysqlPool | MysqlCallbackPool;
  /** What the names of tables and routines begin with. */
  readonly prefix?: string;
}

export const MYSQL_DEFAULTS = { prefix: "holdfast_" } as const;

export interface MysqlTerms {
  readonly prefix: string;
}

export function resolveMysql({ prefix = MYSQL_DEFAULTS.prefix }: { prefix?: string }): MysqlTerms {
  if (typeof prefix !== "string" || !/^[a-z][a-z0-9_]{0,31}$/.test(prefix)) {
    throw new UsageError(
      `prefix is ${JSON.stringify(prefix)}; it begins the names of tables, so it must be a letter and ` +
        "at most 31 more letters, digits or underscores, in lower case",
    );
  }
  return Object.freeze({ prefix });
}

/** What the parameters of a URL say beyond the address. */
export function termsFromUrl(url: EngineUrl): MysqlTerms {
  refuseUnknownParams(url, ["prefix", "tls"]);
  const prefix = url.params.get("prefix");
  return resolveMysql(prefix === undefined ? {} : { prefix });
}
