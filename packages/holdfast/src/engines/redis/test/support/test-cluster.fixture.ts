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
  /** Maps a node's port to the port where it is reached, such as a relay's. */
  readonly ways?: (port: number) => number;
}

/** A Cluster, or a primary with replicas and Sentinels, with clients that are closed with it. */
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

  /** Locks as in another process. */
  async locks(options: TestClusterOptions = {}): Promise<Locks> {
    return this.locksOn(await this.engine(options));
  }

  /** A client of one server alone, whatever its role. */
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

/** Kills a server, as a power cut would: it does not save anything. */
export function crash(server: RedisServer): void {
  process.kill(server.pid, "SIGKILL");
}
