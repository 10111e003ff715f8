import { UsageError } from "../../errors.js";
import { type EngineUrl, refuseUnknownParams } from "../../url.js";
import type { MysqlCallbackPool, MysqlPool } from "./client.js";

export interface MysqlEngineOptions {
  /** A pool of mysql2 or mysql2/promise. It is used and never closed. */
  readonly client: MysqlPool | MysqlCallbackPool;
  /** What the names of tables and routines begin with. */
  readonly prefix?: string;
  /** rows: tables of our own. shedlock: these, and ShedLock's own table, which excludes Java's ShedLock. */
  readonly hold?: MysqlHold;
}

export type MysqlHold = "rows" | "shedlock";

export const MYSQL_DEFAULTS = { prefix: "holdfast_", hold: "rows" } as const;
/** Routines that know of ShedLock have names of their own. */
export const SHEDLOCK_PREFIX = "holdfast_shed_";

export interface MysqlTerms {
  readonly prefix: string;
  readonly hold: MysqlHold;
}

export function resolveMysql(options: Omit<MysqlEngineOptions, "client">): MysqlTerms {
  const { hold = MYSQL_DEFAULTS.hold } = options;
  if (hold !== "rows" && hold !== "shedlock") {
    throw new UsageError(`hold is ${JSON.stringify(hold)}; it must be "rows" or "shedlock"`);
  }
  const { prefix = hold === "rows" ? MYSQL_DEFAULTS.prefix : SHEDLOCK_PREFIX } = options;
  if (typeof prefix !== "string" || !/^[a-z][a-z0-9_]{0,31}$/.test(prefix)) {
    throw new UsageError(
      `prefix is ${JSON.stringify(prefix)}; it begins the names of tables, so it must be a letter and ` +
        "at most 31 more letters, digits or underscores, in lower case",
    );
  }
  return Object.freeze({ prefix, hold });
}

/** What the parameters of a URL say beyond the address. */
export function termsFromUrl(url: EngineUrl): MysqlTerms {
  refuseUnknownParams(url, ["prefix", "hold", "tls"]);
  const prefix = url.params.get("prefix");
  const hold = url.params.get("hold") as MysqlHold | undefined;
  return resolveMysql({
    ...(prefix === undefined ? {} : { prefix }),
    ...(hold === undefined ? {} : { hold }),
  });
}
