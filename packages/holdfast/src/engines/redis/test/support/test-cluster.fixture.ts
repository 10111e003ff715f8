import {
  type ClusterServers,
  type RedisServer,
  type Relay,
  type SentinelServers,
  startCluster,
  startSentinel,
} from "@holdfast/servers";
import { Redis } from "ioredis";
import type { Locks } from "../../../../locks.js";
import { TestServer } from "../../../../test-support/test-server.fixture.js";
import { adaptClient } from "../../clients/connection.js";
import { RedisEngine } from "../../engine.js";
import { REDIS_DEFAULTS, type RedisTerms } from "../../options.js";
import type { Topology } from "./harness.fixture.js";
import type { ClientName } from "./test-server.fixture.js";
import { clusterTopology, sentinelTopology } from "./topology.fixture.js";

export interface TestClusterOptions extends Partial<RedisTerms> {
  readonly client?: ClientName;
  /** Where a node is reached instead of at its own port. */
  readonly ways?: (port: number) => number;
}

/** Several servers that stand in for each other, and clients on them that are closed with them. */
export class TestCluster<S extends SentinelServers | ClusterServers> extends TestServer {
  readonly servers: S;
  readonly topology: Topology;

  private constructor(servers: S, topology: Topology) {
    super();
    this.servers = servers;
    this.topology = topology;
  }

  static async sentinel(): Promise<TestCluster<SentinelServers>> {
    const servers = await startSentinel();
    return new TestCluster(servers, sentinelTopology(servers));
  }

  static async cluster(): Promise<TestCluster<ClusterServers>> {
    const servers = await startCluster();
    return new TestCluster(servers, clusterTopology(servers));
  }

  async engine(options: TestClusterOptions = {}): Promise<RedisEngine> {
    const { client: name = "ioredis", ways, ...terms } = options;
    const { client, close } = await this.topology.client(name, ways);
    const engine = new RedisEngine(adaptClient(client), { ...REDIS_DEFAULTS, ...terms }, close);
    this.closesEngine(engine);
    this.closesClient(close);
    await engine.open();
    return engine;
  }

  /** As another process would have it. */
  async locks(options: TestClusterOptions = {}): Promise<Locks> {
    return this.locksOn(await this.engine(options));
  }

  /** To one server alone, whatever becomes of it. */
  node({ port }: Pick<RedisServer, "port">): Redis {
    const node = new Redis({ port, retryStrategy: () => 20 });
    node.on("error", () => {});
    this.closesClient(() => node.disconnect());
    return node;
  }

  relay({ port }: RedisServer): Promise<Relay> {
    return this.relayTo(port);
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await super[Symbol.asyncDispose]();
    await this.topology.stop();
  }
}

/** Ends a server as a power cut would: it neither saves nor says anything. */
export function crash(server: RedisServer): void {
  process.kill(server.pid, "SIGKILL");
}
