import type { Known } from "../../core/input/known-options.js";
import { UsageError } from "../../errors.js";
import { type EngineUrl, numberParam, refuseUnknownParams } from "../../url.js";
import type { RedisClient } from "../redis/clients/connection.js";
import type { QuorumTerms } from "./voting/quorum.js";

export interface QuorumMember {
  /** What all clients call this node, such as "10.0.0.1:6379". */
  readonly name: string;
  /** A client of node-redis or ioredis for this one server. It is used and never closed. */
  readonly client: RedisClient;
}

export interface QuorumEngineOptions {
  /** Three or more servers that share nothing. All clients must list the same servers. */
  readonly nodes: readonly QuorumMember[];
  /** How many nodes must accept a grant: from a majority up to all. */
  readonly writeQuorum?: number;
  /** The longest sum of ttl and lock-delay. A node that may have forgotten grants is left out this long. */
  readonly maxTtlMs?: number;
  /** How far the nodes' clocks may be apart. */
  readonly maxSkewMs?: number;
  /** How long one node may take to answer; less where the ttl is short. */
  readonly nodeTimeoutMs?: number;
  /** The start of every key. */
  readonly prefix?: string;
  /** How long the fence counter of an unused resource is kept. */
  readonly idleMs?: number;
  /** Lets nodes vote at once although they may have forgotten grants: two clients may hold one lock. */
  readonly unsafeSkipQuarantine?: boolean;
}

export const QUORUM_DEFAULTS = {
  maxTtlMs: 60_000,
  maxSkewMs: 5_000,
  nodeTimeoutMs: 1_000,
  prefix: "holdfast:",
  idleMs: 3_600_000,
} as const;

const MOST_NODES = 30;
/** The core's default. */
const DRIFT = 0.01;

/** Options without the clients: what a URL can say. */
export type QuorumSettings = Omit<QuorumEngineOptions, "nodes">;

export interface ResolvedQuorum extends QuorumTerms {
  readonly names: readonly string[];
  readonly prefix: string;
  readonly idleMs: number;
  /** What all clients must agree on, in the form that nodes store; "" asks for no certificate. */
  readonly agreement: string;
}

export const OPTIONS: Known<QuorumEngineOptions> = {
  ...{ nodes: true, writeQuorum: true, maxTtlMs: true, maxSkewMs: true, nodeTimeoutMs: true },
  ...{ prefix: true, idleMs: true, unsafeSkipQuarantine: true },
};

export function resolveQuorum(names: readonly string[], options: QuorumSettings): ResolvedQuorum {
  const count = names.length;
  if (new Set(names).size !== count || names.some((name) => !/^[^\s,;]+$/.test(name))) {
    throw new UsageError(
      `nodes need different names without spaces, commas and semicolons, got ${names.join(", ")}`,
    );
  }
  if (count < 3 || count > MOST_NODES) {
    throw new UsageError(`a quorum has 3 to ${MOST_NODES} nodes, got ${count}`);
  }
  const majority = Math.floor(count / 2) + 1;
  const writeQuorum = whole("writeQuorum", options.writeQuorum ?? majority, majority, count);
  const maxTtlMs = whole("maxTtlMs", options.maxTtlMs ?? QUORUM_DEFAULTS.maxTtlMs, 200, 86_400_000);
  const half = Math.floor(maxTtlMs / 2);
  const maxSkewMs = whole(
    "maxSkewMs (at most half of maxTtlMs)",
    options.maxSkewMs ?? Math.min(QUORUM_DEFAULTS.maxSkewMs, half),
    10,
    half,
  );
  const prefix = options.prefix ?? QUORUM_DEFAULTS.prefix;
  if (typeof prefix !== "string" || /[{}%]/.test(prefix)) {
    throw new UsageError(
      `prefix is ${JSON.stringify(prefix)}; it must be a string without "{", "}", "%"`,
    );
  }
  const timeoutMs = options.nodeTimeoutMs ?? QUORUM_DEFAULTS.nodeTimeoutMs;
  // A counter may be forgotten once every clock has certainly passed it.
  const leastIdleMs = Math.max(1_000, 2 * maxSkewMs);
  const agreement = `members ${[...names].sort().join(",")}; writeQuorum ${writeQuorum}; maxTtlMs ${maxTtlMs}; maxSkewMs ${maxSkewMs}`;
  return Object.freeze({
    ...{ names, writeQuorum, maxTtlMs, maxSkewMs, prefix, drift: DRIFT },
    nodeTimeoutMs: whole("nodeTimeoutMs", timeoutMs, 10, 60_000),
    idleMs: whole("idleMs", options.idleMs ?? QUORUM_DEFAULTS.idleMs, leastIdleMs, 2 ** 40),
    agreement: options.unsafeSkipQuarantine === true ? "" : agreement,
  });
}

function whole(name: string, value: number, least: number, most: number): number {
  if (Number.isSafeInteger(value) && value >= least && value <= most) return value;
  throw new UsageError(`${name} is ${value}; it must be a whole number from ${least} to ${most}`);
}

const NUMBERS = ["writeQuorum", "maxTtlMs", "maxSkewMs", "nodeTimeoutMs", "idleMs"] as const;

/** What the parameters of a redlock: URL say beyond the addresses. */
export function settingsFromUrl(url: EngineUrl): QuorumSettings {
  refuseUnknownParams(url, [...NUMBERS, "prefix", "tls"]);
  const prefix = url.params.get("prefix");
  return {
    ...(prefix === undefined ? {} : { prefix }),
    ...Object.fromEntries(
      NUMBERS.flatMap((name) => {
        const value = numberParam(url, name);
        return value === undefined ? [] : [[name, value]];
      }),
    ),
  };
}
