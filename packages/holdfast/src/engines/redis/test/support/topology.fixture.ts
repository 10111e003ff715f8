import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type ClusterServers,
  type RedisServer,
  type SentinelServers,
  startCluster,
  startRedis,
  startSentinel,
} from "@holdfast/servers";
import { Cluster, Redis } from "ioredis";
import { createClient, createCluster, createSentinel } from "redis";
import { checkLaws } from "../../../../conformance/index.js";
import type { RedisClient } from "../../clients/connection.js";
import type { RedisTerms } from "../../options.js";
import { type Kind, RedisHarness, type Topology, type Ways } from "./harness.fixture.js";
import type { ClientName } from "./test-server.fixture.js";

const HOST = "127.0.0.1";

function singleTopology(server: RedisServer): Topology {
  const { port, url } = server;
  const admin = new Redis({ port, retryStrategy: () => 20 });
  admin.on("error", () => {});
  const clients = {
    ioredis: async (ways: Ways) => {
      const client = new Redis({ host: HOST, port: ways(port), lazyConnect: true, ...QUICK });
      client.on("error", () => {});
      await client.connect();
      return { client, close: () => client.disconnect() };
    },
    "node-redis": async (ways: Ways) => {
      const socket = { host: HOST, port: ways(port), reconnectStrategy: () => 20 };
      const client = createClient({ socket });
      client.on("error", () => {});
      await client.connect();
      return { client: client as unknown as RedisClient, close: () => client.destroy() };
    },
  };
  return {
    ...{ url, ports: [port], servers: [server], admin },
    client: (client, ways = (own) => own) => clients[client](ways),
    reset: async () => void (await admin.flushall()),
    restart: () => server.restart(),
    stop: async () => {
      admin.disconnect();
      await server.stop();
    },
  };
}

/** A single server with a replica, which must confirm grants. */
async function replicatedTopology(): Promise<Topology> {
  const args = ["--repl-diskless-sync-delay", "0"];
  const primary = await startRedis({ args });
  const follow = [...args, "--replicaof", `${HOST} ${primary.port}`];
  const replica = await startRedis({ args: follow });
  const single = singleTopology(primary);
  const online = async () => {
    for (let looks = 0; looks < 500; looks++) {
      if ((await (single.admin as Redis).info("replication")).includes("state=online")) return;
      await sleep(20);
    }
    throw new Error("the replica does not follow");
  };
  await online();
  return {
    ...single,
    restart: async () => {
      await single.restart();
      await online();
    },
    stop: async () => {
      await single.stop();
      await replica.stop();
    },
  };
}

export function sentinelTopology(servers: SentinelServers): Topology {
  const { name, sentinelPorts } = servers;
  const sentinels = sentinelPorts.map((port) => ({ host: HOST, port }));
  const admin = new Redis({ sentinels, name, retryStrategy: () => 20 });
  admin.on("error", () => {});
  const clients = {
    ioredis: async (ways: Ways) => {
      const natMap = natOf(ports, ways);
      const client = new Redis({ ...{ sentinels, name, natMap, lazyConnect: true }, ...QUICK });
      client.on("error", () => {});
      await client.connect();
      return { client, close: () => client.disconnect() };
    },
    "node-redis": async (ways: Ways) => {
      const client = createSentinel({
        ...{ name, sentinelRootNodes: sentinels, nodeAddressMap: natOf(ports, ways) },
        // A client that misses the Sentinels' message learns of a new primary late, unless it
        // polls. But behind relays it must not poll: there it hangs.
        scanInterval: ports.every((port) => ways(port) === port) ? 500 : 0,
        nodeClientOptions: { socket: { reconnectStrategy: () => 20 } },
      });
      client.on("error", () => {});
      await client.connect();
      const close = () => void client.destroy().catch(() => {});
      return { client: client as unknown as RedisClient, close };
    },
  };
  const ports = servers.servers.map(({ port }) => port);
  return {
    url: `redis+sentinel://${sentinelPorts.map((port) => `${HOST}:${port}`)}/${name}`,
    ...{ ports, servers: servers.servers, admin },
    client: (client, ways = (port) => port) => clients[client](ways),
    reset: async () => void (await admin.flushall()),
    restart: async () => (await servers.primary()).restart(),
    stop: async () => {
      admin.disconnect();
      await servers.stop();
    },
  };
}

export function clusterTopology(servers: ClusterServers): Topology {
  const { ports } = servers;
  const admin = new Cluster([{ host: HOST, port: ports[0]! }], { clusterRetryStrategy: () => 20 });
  admin.on("error", () => {});
  const clients = {
    ioredis: async (ways: Ways) => {
      const client = new Cluster([{ host: HOST, port: ways(ports[0]!) }], {
        ...{ natMap: natOf(ports, ways), lazyConnect: true, clusterRetryStrategy: () => 20 },
      });
      client.on("error", () => {});
      await client.connect();
      return { client: client as unknown as RedisClient, close: () => client.disconnect() };
    },
    "node-redis": async (ways: Ways) => {
      const client = createCluster({
        rootNodes: [{ socket: { host: HOST, port: ways(ports[0]!) } }],
        nodeAddressMap: natOf(ports, ways),
        defaults: { socket: { reconnectStrategy: () => 20 } },
      });
      client.on("error", () => {});
      await client.connect();
      return { client: client as unknown as RedisClient, close: () => client.destroy() };
    },
  };
  // After a restart a Cluster client may not know the primaries yet, so each node has its own
  // client.
  const nodes = ports.map((port) => new Redis({ port, retryStrategy: () => 20 }));
  for (const node of nodes) node.on("error", () => {});
  return {
    url: `redis+cluster://${ports.map((port) => `${HOST}:${port}`)}`,
    ...{ ports, servers: servers.nodes, admin },
    client: (client, ways = (port) => port) => clients[client](ways),
    reset: async () => {
      for (const node of nodes) if ((await roleOf(node)) === "master") await node.flushall();
    },
    restart: async () => {
      const roles = await Promise.all(nodes.map(roleOf));
      const primaries = servers.nodes.filter((_, i) => roles[i] === "master");
      await Promise.all(primaries.map((node) => node.restart()));
      await Promise.all(nodes.map(whole));
    },
    stop: async () => {
      admin.disconnect();
      for (const node of nodes) node.disconnect();
      await servers.stop();
    },
  };
}

const QUICK = { retryStrategy: () => 20, sentinelRetryStrategy: () => 20 };

function natOf(ports: readonly number[], ways: Ways) {
  return Object.fromEntries(
    ports.map((port) => [`${HOST}:${port}`, { host: HOST, port: ways(port) }]),
  );
}

async function roleOf(node: Redis): Promise<string> {
  return String(((await node.call("ROLE")) as unknown[])[0]);
}

async function whole(node: Redis): Promise<void> {
  for (let looks = 0; looks < 500; looks++) {
    if (String(await node.call("CLUSTER", "INFO")).includes("cluster_state:ok")) return;
    await sleep(20);
  }
  throw new Error(`the node on port ${node.options.port} does not see the whole cluster`);
}

const STARTS: Readonly<Record<Kind, () => Promise<Topology>>> = {
  single: async () => singleTopology(await startRedis()),
  replicated: replicatedTopology,
  sentinel: async () => sentinelTopology(await startSentinel()),
  cluster: async () => clusterTopology(await startCluster()),
};

/** Checks all laws, or those whose title matches, through a client on a topology of its own. */
export function checkTopology(
  kind: Kind,
  name: ClientName,
  terms: Partial<RedisTerms> = {},
  wanted = /^L/,
): void {
  let topology: Topology | undefined;
  const harness = new RedisHarness(kind, name, () => topology, terms);
  before(async () => {
    topology = await STARTS[kind]();
  });
  after(async () => {
    await harness.end();
    await topology?.stop();
  });
  checkLaws(harness, (title, run) => {
    if (wanted.test(title)) test(`${kind}, ${name}: ${title}`, run);
  });
}
