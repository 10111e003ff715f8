import type { Known } from "../../core/input/known-options.js";
import { checkIdle, IDLE_MS } from "../../engine-kit/sql/idle.js";
import { UsageError } from "../../errors.js";
import { type EngineUrl, numberParam, refuseUnknownParams } from "../../url.js";
import type { MysqlCallbackPool, MysqlPool } from "./sessions/client.js";

export interface MysqlEngineOptions {
  /** A pool of mysql2 or mysql2/promise. The engine uses it and never closes it. */
  readonly client: MysqlPool | MysqlCallbackPool;
  /** The prefix of the names of tables and routines. */
  readonly prefix?: string;
  /**
   * rows: Holdfast's own tables. shedlock: rows, and ShedLock's own table too, which excludes
   * Java's ShedLock.
   */
  readonly hold?: MysqlHold;
  /**
   * How long unused rows are kept. This concerns disk space only: holders, waiters and clients
   * that may come back are never cut short. If engines differ, the shortest value decides.
   */
  readonly idleMs?: number;
}

export type MysqlHold = "rows" | "shedlock";

export const MYSQL_DEFAULTS = { prefix: "holdfast_", hold: "rows", idleMs: IDLE_MS } as const;
/** Routines that use ShedLock's table have their own prefix. */
export const SHEDLOCK_PREFIX = "holdfast_shed_";

export interface MysqlTerms {
  readonly prefix: string;
  readonly hold: MysqlHold;
  readonly idleMs: number;
}

export const OPTIONS: Known<MysqlEngineOptions> = {
  ...{ client: true, prefix: true, hold: true, idleMs: true },
};

export function resolveMysql(options: Omit<MysqlEngineOptions, "client">): MysqlTerms {
  const { hold = MYSQL_DEFAULTS.hold, idleMs = MYSQL_DEFAULTS.idleMs } = options;
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
  checkIdle(idleMs);
  return Object.freeze({ prefix, hold, idleMs });
}

/** Options from the parameters of a URL. */
export function termsFromUrl(url: EngineUrl): MysqlTerms {
  refuseUnknownParams(url, ["prefix", "hold", "idleMs", "tls"]);
  const prefix = url.params.get("prefix");
  const hold = url.params.get("hold") as MysqlHold | undefined;
  const idleMs = numberParam(url, "idleMs");
  return resolveMysql({
    ...(prefix === undefined ? {} : { prefix }),
    ...(hold === undefined ? {} : { hold }),
    ...(idleMs === undefined ? {} : { idleMs }),
  });
}
