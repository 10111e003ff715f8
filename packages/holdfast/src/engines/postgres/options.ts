import type { Known } from "../../core/input/known-options.js";
import { checkIdle, IDLE_MS } from "../../engine-kit/sql/idle.js";
import { kindOf, UsageError } from "../../errors.js";
import { type EngineUrl, numberParam, refuseUnknownParams } from "../../url.js";
import { isPool, type PgClient, type PgPool } from "./sessions/client.js";

export interface PostgresEngineOptions {
  /** pg's Pool, or a connected Client. The engine uses it and never closes it. */
  readonly client: PgPool | PgClient;
  /** The schema in which init() created the tables. */
  readonly schema?: string;
  /**
   * Whether grants and revocations arrive through LISTEN, on one more connection. Needs a Pool,
   * and no transaction pooler in between. If nothing arrives, the engine polls instead.
   */
  readonly listen?: boolean;
  /**
   * rows: Holdfast's own tables, with a queue. advisory: session locks, which exclude every
   * program that calls pg_advisory_lock; needs a Pool and no transaction pooler in between.
   * shedlock: rows, and ShedLock's own table too, which excludes Java's ShedLock.
   */
  readonly hold?: PostgresHold;
  /**
   * Put before a name to form the key of an advisory lock. With "" the key is the one that other
   * programs use.
   */
  readonly prefix?: string;
  /**
   * How long unused rows are kept. This concerns disk space only: holders, waiters and clients
   * that may come back are never cut short. If engines differ, the shortest value decides.
   */
  readonly idleMs?: number;
}

export type PostgresHold = "rows" | "advisory" | "shedlock";

export const POSTGRES_DEFAULTS = {
  schema: "holdfast",
  listen: true,
  hold: "rows",
  prefix: "holdfast:",
  idleMs: IDLE_MS,
} as const;

export interface PostgresTerms {
  readonly schema: string;
  readonly listen: boolean;
  readonly hold: PostgresHold;
  readonly prefix: string;
  readonly idleMs: number;
}

const HOLDS: readonly PostgresHold[] = ["rows", "advisory", "shedlock"];
/** Routines that use ShedLock's table live in their own schema. */
export const SHEDLOCK_SCHEMA = "holdfast_shedlock";

export const OPTIONS: Known<PostgresEngineOptions> = {
  ...{ client: true, schema: true, listen: true, hold: true, prefix: true, idleMs: true },
};

export function resolvePostgres(options: Omit<PostgresEngineOptions, "client">): PostgresTerms {
  const { hold = POSTGRES_DEFAULTS.hold, listen = POSTGRES_DEFAULTS.listen } = options;
  const usual = hold === "shedlock" ? SHEDLOCK_SCHEMA : POSTGRES_DEFAULTS.schema;
  const { schema = usual, prefix = POSTGRES_DEFAULTS.prefix } = options;
  const { idleMs = POSTGRES_DEFAULTS.idleMs } = options;
  if (typeof schema !== "string" || !/^[a-z_][a-z0-9_]{0,47}$/.test(schema)) {
    throw new UsageError(
      `schema is ${JSON.stringify(schema)}; it must be a lower-case identifier of at most 48 characters`,
    );
  }
  if (typeof listen !== "boolean") {
    throw new UsageError(`listen is ${JSON.stringify(listen)}; it must be true or false`);
  }
  if (!HOLDS.includes(hold)) {
    throw new UsageError(`hold is ${JSON.stringify(hold)}; it must be ${HOLDS.join(" or ")}`);
  }
  if (typeof prefix !== "string" || (hold !== "advisory" && prefix !== POSTGRES_DEFAULTS.prefix)) {
    throw new UsageError(
      `prefix is ${JSON.stringify(prefix)}; it is for hold: "advisory", and rows have "schema" instead`,
    );
  }
  checkIdle(idleMs);
  return Object.freeze({ schema, listen, hold, prefix, idleMs });
}

export function checkClient(client: unknown): asserts client is PgPool | PgClient {
  if (canQuery(client) && (isPool(client) || "on" in client)) return;
  throw noClient(client);
}

/** A client that is used for one call need not emit errors. */
export function checkSession(client: unknown): asserts client is PgPool | PgClient {
  if (!canQuery(client)) throw noClient(client);
}

function canQuery(client: unknown): client is PgClient {
  return typeof client === "object" && client !== null && "query" in client;
}

function noClient(client: unknown): UsageError {
  const advice =
    typeof client === "string" ? '; init(url) and connect(url) from "holdfast" take a URL' : "";
  return new UsageError(
    `client must be a Pool or a connected Client of pg, got ${kindOf(client)}${advice}`,
  );
}

const PARAMS = ["schema", "listen", "hold", "prefix", "idleMs", "tls"];

/** Options from the parameters of a URL. */
export function termsFromUrl(url: EngineUrl): PostgresTerms {
  refuseUnknownParams(url, PARAMS);
  const schema = url.params.get("schema");
  const listen = url.params.get("listen");
  const hold = url.params.get("hold") as PostgresHold | undefined;
  const prefix = url.params.get("prefix");
  const idleMs = numberParam(url, "idleMs");
  if (listen !== undefined && listen !== "true" && listen !== "false") {
    throw new UsageError(`listen is "${listen}"; it must be true or false`);
  }
  return resolvePostgres({
    ...(schema === undefined ? {} : { schema }),
    ...(listen === undefined ? {} : { listen: listen === "true" }),
    ...(hold === undefined ? {} : { hold }),
    ...(prefix === undefined ? {} : { prefix }),
    ...(idleMs === undefined ? {} : { idleMs }),
  });
}
