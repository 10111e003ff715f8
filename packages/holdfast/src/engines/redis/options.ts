import { UsageError } from "../../errors.js";
import { type EngineUrl, refuseUnknownParams } from "../../url.js";
import type { RedisClient, Wait } from "./client.js";

/** Parameters of a URL that say where Redis is and how to reach it. */
export const ADDRESS_PARAMS = ["tls"];

export interface RedisEngineOptions {
  /** A client of node-redis or ioredis. It is used and never closed. */
  readonly client: RedisClient;
  /** Before every key; "" makes the key of a resource its plain name, as other programs use it. */
  readonly prefix?: string;
  /** How long the last token of a resource that nobody uses is kept. */
  readonly idleMs?: number;
  /**
   * Grants and renewals count only when so many replicas have them, asked by WAIT. That narrows the
   * window in which a failover forgets a grant, and does not close it.
   */
  readonly replicas?: { readonly wait: number; readonly timeoutMs?: number };
}

export const REDIS_DEFAULTS = { prefix: "holdfast:", idleMs: 3_600_000, replicas: null } as const;

const WAIT_TIMEOUT_MS = 500;

export interface RedisTerms {
  readonly prefix: string;
  readonly idleMs: number;
  readonly replicas: Wait | null;
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
  return Object.freeze({ prefix, idleMs, replicas: resolveReplicas(options.replicas) });
}

function resolveReplicas(asked: RedisEngineOptions["replicas"]): Wait | null {
  if (asked === undefined) return null;
  const { wait: replicas, timeoutMs = WAIT_TIMEOUT_MS } = asked;
  for (const [name, value] of Object.entries({ wait: replicas, timeoutMs })) {
    // WAIT with a timeout of 0 waits for ever.
    if (Number.isSafeInteger(value) && value >= 1) continue;
    throw new UsageError(`replicas.${name} is ${value}; it must be a whole number of 1 or more`);
  }
  return Object.freeze({ replicas, timeoutMs });
}

/** What the parameters of a URL say beyond the address. */
export function termsFromUrl(url: EngineUrl): RedisTerms {
  refuseUnknownParams(url, [
    "prefix",
    "idleMs",
    "replicas",
    "replicasTimeoutMs",
    ...ADDRESS_PARAMS,
  ]);
  const prefix = url.params.get("prefix");
  const idle = url.params.get("idleMs");
  const wait = url.params.get("replicas");
  const timeoutMs = url.params.get("replicasTimeoutMs");
  if (wait === undefined && timeoutMs !== undefined) {
    throw new UsageError("replicasTimeoutMs is given without replicas");
  }
  return resolveRedis({
    ...(wait === undefined
      ? {}
      : {
          replicas: {
            wait: Number(wait),
            ...(timeoutMs === undefined ? {} : { timeoutMs: Number(timeoutMs) }),
          },
        }),
    ...(prefix === undefined ? {} : { prefix }),
    ...(idle === undefined ? {} : { idleMs: Number(idle) }),
  });
}
