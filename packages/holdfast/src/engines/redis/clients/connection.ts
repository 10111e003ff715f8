import { kindOf, UsageError } from "../../../errors.js";
import { adaptIoRedis, type IoRedisClient, type IoRedisClusterClient } from "./ioredis.js";
import {
  adaptNodeRedis,
  type NodeRedisClient,
  type NodeRedisClusterClient,
  type NodeRedisSentinelClient,
} from "./node-redis.js";

export type RedisClient =
  | IoRedisClient
  | IoRedisClusterClient
  | NodeRedisClient
  | NodeRedisClusterClient
  | NodeRedisSentinelClient;

type OnMessage = (channel: string, message: string) => void;
type OnError = (error: Error) => void;

/** A connection of its own, which comes back by itself when it was lost. */
export interface Subscription {
  /** Resolves once everything is heard; until then, and after a failure, only close is left to do. */
  readonly ready: Promise<void>;
  /** Whether it will not come back: some clients are told to give up. */
  isOver(): boolean;
  close(): void;
}

/** A connection of its own to one node of a Cluster, for what that node tells. */
export interface NodeListener {
  /** A channel of the shard alone, or one that all nodes tell everybody. May be asked again. */
  subscribe(channel: string, kind: "shard" | "everywhere"): Promise<void>;
  close(): void;
}

export interface Shards {
  /** Who serves the slot, as far as the client knows. */
  primaryOf(slot: number): string | Promise<string>;
  listen(address: string, onMessage: OnMessage, onError: OnError): NodeListener;
}

export type ScriptRef = { readonly sha: string } | { readonly text: string };

/** What the engine asks of either client. */
export interface RedisConnection {
  /** A Cluster carries out a command only if all its keys are in one slot. */
  readonly shards?: Shards;
  /**
   * Changes whenever the connection is lost by which this key is reached; confirming: by `confirmed`.
   * Where it is another one when the answer comes, the client may have sent the command twice by
   * itself. Left out for clients that never do.
   */
  connectionId?(key: string, waits: boolean): unknown;
  /** EVALSHA, or EVAL where a text is given. */
  runScript(script: ScriptRef, keys: string[], args: string[]): Promise<unknown>;
  /**
   * The same, and how many replicas have it after at most so long. They are asked on the connection
   * that wrote; where that cannot be told, none has it.
   */
  runScriptAndWait(
    script: ScriptRef,
    keys: string[],
    args: string[],
    wait: ReplicaWait,
  ): Promise<ReplicatedAnswer>;
  /** A page of the keys that match; null is the first cursor, and the last. */
  scan(cursor: string | null, glob: string, max: number): Promise<[string | null, string[]]>;
  /** A section of INFO, of every primary. */
  info(section: string): Promise<readonly string[]>;
  /** Not on a Cluster. */
  subscribe(channels: readonly string[], onMessage: OnMessage, onError: OnError): Subscription;
  /** Ends what was opened beside the client. */
  close(): void;
}

export interface ReplicaWait {
  readonly replicas: number;
  readonly timeoutMs: number;
}

export interface ReplicatedAnswer {
  readonly answer: unknown;
  readonly replicas: number;
}

export function isClient(given: object): boolean {
  return "withCommandOptions" in given || "evalsha" in given;
}

export function adaptClient(client: RedisClient): RedisConnection {
  if (typeof client === "object" && client !== null) {
    if ("withCommandOptions" in client) return adaptNodeRedis(client);
    if ("evalsha" in client && "duplicate" in client) return adaptIoRedis(client);
  }
  throw new UsageError(
    "client must be a client of node-redis (createClient, createCluster, createSentinel) or of " +
      `ioredis (new Redis, new Cluster), got ${kindOf(client)}`,
  );
}
