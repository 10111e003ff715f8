import { UsageError } from "../../errors.js";
import { type EngineUrl, refuseUnknownParams } from "../../url.js";
import { isPool, type PgClient, type PgPool } from "./client.js";

export interface PostgresEngineOptions {
  /** pg's Pool, or a connected Client. It is used and never closed. */
  readonly client: PgPool | PgClient;
  /** Where createSchema() made the tables. */
  readonly schema?: string;
  /**
   * Whether to hear of grants and revocations through LISTEN, on one more connection. It takes a
   * Pool, and no transaction pooler in between; where it finds itself deaf, it polls.
   */
  readonly listen?: boolean;
}

export const POSTGRES_DEFAULTS = { schema: "holdfast", listen: true } as const;

export interface PostgresTerms {
  readonly schema: string;
  readonly listen: boolean;
}

export function resolvePostgres(options: Omit<PostgresEngineOptions, "client">): PostgresTerms {
  const { schema = POSTGRES_DEFAULTS.schema, listen = POSTGRES_DEFAULTS.listen } = options;
  if (typeof schema !== "string" || !/^[a-z_][a-z0-9_]{0,47}$/.test(schema)) {
    throw new UsageError(
      `schema is ${JSON.stringify(schema)}; it must be a lower-case identifier of at most 48 characters`,
    );
  }
  if (typeof listen !== "boolean") {
    throw new UsageError(`listen is ${JSON.stringify(listen)}; it must be true or false`);
  }
  return Object.freeze({ schema, listen });
}

export function checkClient(client: unknown): asserts client is PgPool | PgClient {
  const usable = typeof client === "object" && client !== null && "query" in client;
  if (usable && (isPool(client as unknown as PgClient) || "on" in client)) return;
  throw new UsageError("client must be a Pool or a connected Client of pg");
}

const PARAMS = ["schema", "listen", "tls", "hold"];

/** What the parameters of a URL say beyond the address. */
export function termsFromUrl(url: EngineUrl): PostgresTerms {
  refuseUnknownParams(url, PARAMS);
  const schema = url.params.get("schema");
  const listen = url.params.get("listen");
  if (listen !== undefined && listen !== "true" && listen !== "false") {
    throw new UsageError(`listen is "${listen}"; it must be true or false`);
  }
  return resolvePostgres({
    ...(schema === undefined ? {} : { schema }),
    ...(listen === undefined ? {} : { listen: listen === "true" }),
  });
}
