import { describe, it } from "node:test";
import {
  allOrNone,
  type RedisOptions,
  type RedisServer,
  type Relay,
  startRedis,
} from "@holdfast/servers";
import { Redis } from "ioredis";
import { createClient } from "redis";
import type { Locks } from "../../../../locks.js";
import type { Child } from "../../../../test-support/child.fixture.js";
import { TestServer, untilWaiters } from "../../../../test-support/test-server.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { type RedisClient, type RedisEngineOptions, redisEngine } from "../../index.js";

// More tests at a time would slow each other down and spoil their measured times.
const AT_A_TIME = 3;

/** Replicas synchronise at once. By default a primary waits five seconds for more of them. */
export const PROMPT: RedisOptions = { args: ["--repl-diskless-sync-delay", "0"] };

export type ClientName = "node-redis" | "ioredis";
export const CLIENT_NAMES: readonly ClientName[] = ["node-redis", "ioredis"];

export interface OpenOptions extends Omit<RedisEngineOptions, "client"> {
  readonly client?: ClientName;
  readonly port?: number;
  /** The port for pushes, if another. */
  readonly pushPort?: number;
  readonly database?: number;
  readonly user?: readonly [name: string, password: string];
  /** Only for node-redis, whose default is 3. */
  readonly resp?: 2 | 3;
  /** What node-redis gives for each type of RESP, by the type's first byte. */
  readonly typeMapping?: { readonly 36?: typeof Buffer; readonly 58?: typeof String };
  /** Gets the ioredis client before the engine does. */
  readonly shows?: (client: Redis) => void;
  /** Whether the client never reconnects. */
  readonly givesUp?: boolean;
  /** More options for ioredis. */
  readonly ioredis?: {
    readonly stringNumbers?: boolean;
    readonly retryStrategy?: () => number;
    readonly keyPrefix?: string;
    readonly enableReadyCheck?: boolean;
    readonly disableClientInfo?: boolean;
    readonly enableAutoPipelining?: boolean;
    readonly autoResendUnfulfilledCommands?: boolean;
    readonly protocol?: 2 | 3;
  };
}

/** A Redis for one test, with clients that are closed with it. */
export class RedisTestServer extends TestServer {
  readonly server: RedisServer;
  /** A client that no test disturbs. */
  readonly admin: Redis;
  readonly untilWaiters = untilWaiters;

  private constructor(server: RedisServer) {
    super();
    this.server = server;
    this.admin = new Redis({ port: server.port, retryStrategy: () => 20 });
    this.admin.on("error", () => {});
  }

  static async start(options?: RedisOptions): Promise<RedisTestServer> {
    return new RedisTestServer(await startRedis(options));
  }

  /**
   * How often the server ran this command since its start or the last reset, also inside scripts.
   */
  async calls(command: string): Promise<number> {
    const stats = await this.admin.info("commandstats");
    return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
  }

  engine(options: OpenOptions = {}): ReturnType<typeof redisEngine> {
    const { client: name = "ioredis", prefix, idleMs, replicas } = options;
    const client = name === "ioredis" ? this.ioRedis(options) : this.nodeRedis(options);
    return this.closesEngine(
      redisEngine({
        client,
        ...(prefix === undefined ? {} : { prefix }),
        ...(idleMs === undefined ? {} : { idleMs }),
        ...(replicas === undefined ? {} : { replicas }),
      }),
    );
  }

  /** Locks as in another process, with their own client and connection for pushes. */
  locks(options: OpenOptions = {}): Locks {
    return this.locksOn(this.engine(options));
  }

  ioRedis(options: OpenOptions = {}): RedisClient & Redis {
    const { port, pushPort, database, user, ioredis, givesUp = false, shows } = options;
    const client = new Redis({
      port: port ?? this.server.port,
      ...(database === undefined ? {} : { db: database }),
      ...(user === undefined ? {} : { username: user[0], password: user[1] }),
      retryStrategy: () => (givesUp ? null : 20),
      ...ioredis,
    });
    client.on("error", () => {});
    this.closesClient(() => client.disconnect());
    if (pushPort !== undefined) {
      const duplicate = client.duplicate.bind(client);
      client.duplicate = (override) => duplicate({ ...override, port: pushPort });
    }
    shows?.(client);
    return client as RedisClient & Redis;
  }

  nodeRedis(open: OpenOptions = {}): RedisClient {
    const { port, pushPort, database, user, resp, typeMapping, givesUp = false } = open;
    const socket = { host: "127.0.0.1", port: port ?? this.server.port };
    const options = {
      socket: { ...socket, reconnectStrategy: () => (givesUp ? (false as const) : 20) },
      ...(database === undefined ? {} : { database }),
      ...(user === undefined ? {} : { username: user[0], password: user[1] }),
      ...(resp === undefined ? {} : { RESP: resp }),
      ...(typeMapping === undefined ? {} : { commandOptions: { typeMapping } }),
    };
    const client = createClient(options);
    client.on("error", () => {});
    void client.connect().catch(() => {});
    this.closesClient(() => client.destroy());
    if (pushPort !== undefined) {
      const elsewhere = { ...options, socket: { ...options.socket, port: pushPort } };
      client.duplicate = (() => createClient(elsewhere)) as unknown as typeof client.duplicate;
    }
    return client as unknown as RedisClient;
  }

  relay(): Promise<Relay> {
    return this.relayTo(this.server.port);
  }

  /** Starts replicas of this server, which should have been started with PROMPT. */
  async replicas(count: number): Promise<RedisServer[]> {
    const args = ["--replicaof", `127.0.0.1 ${this.server.port}`];
    const started = await allOrNone(Array.from({ length: count }, () => startRedis({ args })));
    for (const replica of started) this.closesClient(() => replica.stop());
    const online = async () => (await this.admin.info("replication")).match(/state=online/g);
    await until("replicas follow", async () => (await online())?.length === count);
    return started;
  }

  /** Starts a fixture beside this file. */
  child(fixture: string, args: readonly string[]): Child {
    return this.start(new URL(`${fixture}.child.js`, import.meta.url), args);
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await super[Symbol.asyncDispose]();
    this.admin.disconnect();
    await this.server.stop();
  }
}

export type TestBody = (redis: RedisTestServer) => Promise<void>;

/**
 * Tests that mostly wait, a few at a time. Each has its own Redis, so it does not disturb the
 * others.
 */
export function describeWithServer(
  name: string,
  define: (it: (title: string, body: TestBody) => void) => void,
  options: RedisOptions = {},
): void {
  describe(name, { concurrency: AT_A_TIME }, () => {
    define((title, body) =>
      it(title, async () => {
        await using redis = await RedisTestServer.start(options);
        await body(redis);
      }));
  });
}
