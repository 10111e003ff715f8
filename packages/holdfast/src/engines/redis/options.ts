import { UsageError } from "../../errors.js";
import { type EngineUrl, refuseUnknownParams } from "../../url.js";
import type { RedisClient } from "./client.js";

export interface RedisEngineOptions {
  /** A client of node-redis or ioredis. It is used and never closed. */
  readonly client: RedisClient;
  /** Before every key; "" makes the key of a resource its plain name, as other programs use it. */
  readonly prefix?: string;
  /** How long the last token of a resource that nobody uses is kept. */
  readonly idleMs?: number;
}

export const REDIS_DEFAULTS = { prefix: "holdfast:", idleMs: 3_600_000 } as const;

export interface RedisTerms {
  readonly prefix: string;
  readonly idleMs: number;
}

export function resolveRedis(options: Omit<RedisEngineOptions, "client">): RedisTerms {
  const prefix = options.prefix ?? REDIS_DEFAULTS.prefix;
  if (typeof prefix !== "string" || /[{}%]/.test(prefix)) {
    throw new UsageError(
      `prefix is ${JSON.stringify(prefix)}; it must be a string without "{", "}", "%"`,
    );
  }
  const idleMs = options.idleMs ?? REDIS_DEFAULTS.idleMs;
  if (!(Number.isSafeInteger(idleMs) && idleMs >= 1_000)) {
    throw new UsageError(`idleMs is ${idleMs}; it must be a whole number of 1000 or more`);
  }
  return Object.freeze({ prefix, idleMs });
}

/** What the parameters of a URL say beyond the address. */
export function termsFromUrl(url: EngineUrl): RedisTerms {
  refuseUnknownParams(url, ["prefix", "idleMs"]);
  const prefix = url.params.get("prefix");
  const idle = url.params.get("idleMs");
  return resolveRedis({
    ...(prefix === undefined ? {} : { prefix }),
    ...(idle === undefined ? {} : { idleMs: Number(idle) }),
  });
}
