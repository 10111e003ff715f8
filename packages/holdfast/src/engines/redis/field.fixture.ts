import { setTimeout as sleep } from "node:timers/promises";
import {
  type ClusterServers,
  type RedisServer,
  Relay,
  type SentinelServers,
  startCluster,
  startSentinel,
} from "@holdfast/servers";
import { Redis } from "ioredis";
import { Locks } from "../../locks.js";
import { seamOf } from "./client.js";
import { RedisEngine } from "./engine.js";
import { Child, type ClientName } from "./ground.fixture.js";
import type { Topology } from "./harness.fixture.js";
import { REDIS_DEFAULTS, type RedisTerms } from "./options.js";
import { clusterTopology, sentinelTopology } from "./topology.fixture.js";

export interface FieldOptions extends Partial<RedisTerms> {
  readonly client?: ClientName;
  /** Where a node is reached instead of at its own port. */
  readonly ways?: (port: number) => number;
}

/** Several servers that stand in for each other, and clients on them that are closed with them. */
export class Field<S extends SentinelServers | ClusterServers> implements AsyncDisposable {
  readonly servers: S;
  readonly topology: Topology;
  readonly #locks: (() => unknown)[] = [];
  readonly #clients: (() => unknown)[] = [];

  private constructor(servers: S, topology: Topology) {
    this.servers = servers;
    this.topology = topology;
  }

  static async sentinel(): Promise<Field<SentinelServers>> {
    const servers = await startSentinel();
    return new Field(servers, sentinelTopology(servers));
  }

  static async cluster(): Promise<Field<ClusterServers>> {
    const servers = await startCluster();
    return new Field(servers, clusterTopology(servers));
  }

  async engine(options: FieldOptions = {}): Promise<RedisEngine> {
    const { client: name = "ioredis", ways, ...terms } = options;
    const { client, close } = await this.topology.client(name, ways);
    const engine = new RedisEngine(seamOf(client), { ...REDIS_DEFAULTS, ...terms }, close);
    this.#locks.push(() => engine.close());
    this.#clients.push(close);
    await engine.open();
    return engine;
  }

  /** As another process would have it. */
  async locks(options: FieldOptions = {}): Promise<Locks> {
    const locks = new Locks(await this.engine(options));
    this.#locks.unshift(() => locks.close());
    return locks;
  }

  /** To one server alone, whatever becomes of it. */
  node({ port }: Pick<RedisServer, "port">): Redis {
    const node = new Redis({ port, retryStrategy: () => 20 });
    node.on("error", () => {});
    this.#clients.push(() => node.disconnect());
    return node;
  }

  async relay({ port }: RedisServer): Promise<Relay> {
    const relay = await Relay.start(port);
    this.#clients.push(() => relay.close());
    return relay;
  }

  child(fixture: string, args: readonly string[]): Child {
    const child = new Child(fixture, args);
    this.#clients.push(() => child.kill());
    return child;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // What is cut off or has failed cannot be closed in order, and need not be.
    const enough = sleep(1_000);
    for (const closers of [this.#locks, this.#clients]) {
      await Promise.race([Promise.allSettled(closers.map(async (close) => close())), enough]);
    }
    await this.topology.stop();
  }
}

/** Ends a server as a power cut would: it neither saves nor says anything. */
export function crash(server: RedisServer): void {
  process.kill(server.pid, "SIGKILL");
}
