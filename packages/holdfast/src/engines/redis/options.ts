import { type Known, refuseUnknown } from "../../core/input/known-options.js";
import { UsageError } from "../../errors.js";
import { type EngineUrl, numberParam, refuseUnknownParams } from "../../url.js";
import type { RedisClient, ReplicaWait } from "./clients/connection.js";

/** URL parameters that say how to reach Redis. */
export const ADDRESS_PARAMS = ["tls"];

export interface RedisEngineOptions {
  /** A client of node-redis or ioredis. The engine uses it and never closes it. */
  readonly client: RedisClient;
  /**
   * Put before every key. With "" the key of a resource is its plain name, as other programs use
   * it.
   */
  readonly prefix?: string;
  /** How long the last token of an unused resource is kept. */
  readonly idleMs?: number;
  /**
   * Grants and renewals count only once WAIT has confirmed that this many replicas have them. A
   * failover then forgets a grant less often, but still can.
   */
  readonly replicas?: { readonly wait: number; readonly timeoutMs?: number };
  /**
   * Whether the event loop spins for up to 0.15 ms while a caller that does one thing at a time
   * waits for an answer. A loop over locks then runs up to twice as fast, for up to a fifth more
   * CPU time each turn.
   */
  readonly spin?: boolean;
}

export const REDIS_DEFAULTS = {
  prefix: "holdfast:",
  idleMs: 3_600_000,
  replicas: null,
  spin: true,
} as const;

const WAIT_TIMEOUT_MS = 500;

export interface RedisTerms {
  readonly prefix: string;
  readonly idleMs: number;
  readonly replicas: ReplicaWait | null;
  readonly spin: boolean;
}

export const OPTIONS: Known<RedisEngineOptions> = {
  ...{ client: true, prefix: true, idleMs: true, replicas: true, spin: true },
};
const REPLICAS: Known<NonNullable<RedisEngineOptions["replicas"]>> = {
  ...{ wait: true, timeoutMs: true },
};

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
  const spin = options.spin ?? REDIS_DEFAULTS.spin;
  if (typeof spin !== "boolean") {
    throw new UsageError(`spin is ${JSON.stringify(spin)}; it must be true or false`);
  }
  return Object.freeze({ prefix, idleMs, replicas: resolveReplicas(options.replicas), spin });
}

function resolveReplicas(asked: RedisEngineOptions["replicas"]): ReplicaWait | null {
  if (asked === undefined) return null;
  refuseUnknown(asked, REPLICAS, "replicas");
  const { wait: replicas, timeoutMs = WAIT_TIMEOUT_MS } = asked;
  for (const [name, value] of Object.entries({ wait: replicas, timeoutMs })) {
    // WAIT with a timeout of 0 waits for ever.
    if (Number.isSafeInteger(value) && value >= 1) continue;
    throw new UsageError(`replicas.${name} is ${value}; it must be a whole number of 1 or more`);
  }
  return Object.freeze({ replicas, timeoutMs });
}

/** The engine's terms from the parameters of a URL; the address is read elsewhere. */
export function termsFromUrl(url: EngineUrl): RedisTerms {
  refuseUnknownParams(url, [
    "prefix",
    "idleMs",
    "replicas",
    "replicasTimeoutMs",
    "spin",
    ...ADDRESS_PARAMS,
  ]);
  const prefix = url.params.get("prefix");
  const idleMs = numberParam(url, "idleMs");
  const wait = numberParam(url, "replicas");
  const timeoutMs = numberParam(url, "replicasTimeoutMs");
  if (wait === undefined && timeoutMs !== undefined) {
    throw new UsageError("replicasTimeoutMs is given without replicas");
  }
  const spin = url.params.get("spin");
  if (spin !== undefined && spin !== "true" && spin !== "false") {
    throw new UsageError(`spin is "true" or "false", got ${JSON.stringify(spin)}`);
  }
  return resolveRedis({
    ...(wait === undefined
      ? {}
      : { replicas: { wait, ...(timeoutMs === undefined ? {} : { timeoutMs }) } }),
    ...(prefix === undefined ? {} : { prefix }),
    ...(idleMs === undefined ? {} : { idleMs }),
    ...(spin === undefined ? {} : { spin: spin === "true" }),
  });
}
