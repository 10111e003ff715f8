import { kindOf, UsageError } from "../../../errors.js";
import { adaptIoRedis } from "./ioredis/adapt-ioredis.js";
import type { IoRedisClient, IoRedisClusterClient } from "./ioredis/ioredis-client.js";
import { adaptNodeRedis } from "./node-redis/adapt-node-redis.js";
import type {
  NodeRedisClient,
  NodeRedisClusterClient,
  NodeRedisSentinelClient,
} from "./node-redis/node-redis-client.js";

export type RedisClient =
  | IoRedisClient
  | IoRedisClusterClient
  | NodeRedisClient
  | NodeRedisClusterClient
  | NodeRedisSentinelClient;

type OnMessage = (channel: string, message: string) => void;
type OnError = (error: Error) => void;

/** A subscription on a connection of its own, which reconnects by itself. */
export interface Subscription {
  /**
   * Resolves once all channels are subscribed. Before that, and after a failure, only close() is
   * useful.
   */
  readonly ready: Promise<void>;
  /** Whether it will never reconnect: some clients are configured to give up. */
  isOver(): boolean;
  close(): void;
}

/** A connection of its own to one node of a Cluster, which receives that node's messages. */
export interface NodeListener {
  /**
   * Subscribes to a sharded channel, or to a plain one, which all nodes forward. May be called
   * again.
   */
  subscribe(channel: string, kind: "shard" | "everywhere"): Promise<void>;
  close(): void;
}

export interface Shards {
  /** The address of the slot's primary, as far as the client knows. */
  primaryOf(slot: number): string | Promise<string>;
  listen(address: string, onMessage: OnMessage, onError: OnError): NodeListener;
}

export type ScriptRef = { readonly sha: string } | { readonly text: string };

/** What the engine needs from a client, the same for all clients. */
export interface RedisConnection {
  /** A Cluster carries out a command only if all its keys are in one slot. */
  readonly shards?: Shards;
  /**
   * Changes whenever the connection that serves this key is lost; `waits` asks about the connection
   * of runScriptAndWait. If the id differs when the answer comes, the client may have sent the
   * command twice by itself. Clients that never send twice have no ids.
   */
  connectionId?(key: string, waits: boolean): unknown;
  /** EVALSHA, or EVAL where the text is given. */
  runScript(script: ScriptRef, keys: string[], args: string[]): Promise<unknown>;
  /**
   * Runs the script and then WAIT, which counts the replicas that have its writes. Both must run on
   * the same connection; where that is not certain, the count is 0.
   */
  runScriptAndWait(
    script: ScriptRef,
    keys: string[],
    args: string[],
    wait: ReplicaWait,
  ): Promise<ReplicatedAnswer>;
  /**
   * A page of the keys that match. The first cursor is null, and so is the one after the last page.
   */
  scan(cursor: string | null, glob: string, max: number): Promise<[string | null, string[]]>;
  /** A section of INFO from every primary. */
  info(section: string): Promise<readonly string[]>;
  /** Not on a Cluster. */
  subscribe(channels: readonly string[], onMessage: OnMessage, onError: OnError): Subscription;
  /** Closes the connections that were opened beside the client. */
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
