import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type ClusterServers,
  processorTimeUs,
  type RedisServer,
  Relay,
  type SentinelServers,
  startCluster,
  startRedis,
  startSentinel,
} from "@holdfast/servers";
import { Cluster, Redis } from "ioredis";
import { createClient, createCluster, createSentinel } from "redis";
import { checkLaws, type Harness } from "../../conformance/index.js";
import type { Engine } from "../../engine.js";
import { type RedisClient, seamOf } from "./client.js";
import { REDIS_TRAITS, RedisEngine } from "./engine.js";
import { type ClientName, claim, now } from "./ground.fixture.js";
import { keyOf } from "./keys.js";
import { misanswering, SHAPES } from "./misanswering.fixture.js";
import { REDIS_DEFAULTS, type RedisTerms } from "./options.js";
import { age, silence, truth } from "./record.fixture.js";
import { SLOTS, slotOf } from "./slots.js";

const HOST = "127.0.0.1";

/** Where a node of the topology is reached instead of at its own port. */
type Ways = (port: number) => number;

export interface Topology {
  readonly url: string;
  /** The ports of all nodes that hold data. */
  readonly ports: readonly number[];
  readonly servers: readonly RedisServer[];
  /** A client that meets every node by these ways. */
  client(name: ClientName, ways?: Ways): Promise<{ client: RedisClient; close(): void }>;
  /** Sees everything, never disturbed. */
  readonly admin: Redis | Cluster;
  reset(): Promise<void>;
  restart(): Promise<void>;
  stop(): Promise<void>;
}

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

/** A single server whose replica must have what counts. */
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
        // Where it misses the Sentinels' word, it finds out late unless it looks by itself; and where
        // nodes are reached elsewhere than the Sentinels say, it hangs when it looks.
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
  // A Cluster client may not know yet who is primary after a restart.
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

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, one) => sum + one, 0);
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
  throw new Error(`the node on port ${node.options.port} finds the cluster not whole`);
}

/** Clients connect when they first need to; what a law leaves behind is counted later. */
async function meet(engine: Engine, resources: readonly string[]): Promise<void> {
  await Promise.all(
    resources.map(async (resource) => {
      const one = claim(resource);
      await engine.queue!.enqueue(one, now());
      await engine.release([{ resource, grantId: one.grantId, tombstoneMs: 0 }], now());
    }),
  );
}

// Of three shards, each has one of these: a third of the slots, in order.
const MEETINGS = [0, 1, 2].map((shard) => {
  const inShard = (name: string) =>
    Math.floor((slotOf(keyOf(REDIS_DEFAULTS.prefix, name)) * 3) / SLOTS) === shard;
  return Array.from({ length: 100 }, (_, i) => `meeting-${i}`).find(inShard)!;
});

const STARTS = {
  single: async () => singleTopology(await startRedis()),
  replicated: replicatedTopology,
  sentinel: async () => sentinelTopology(await startSentinel()),
  cluster: async () => clusterTopology(await startCluster()),
};

// Where the laws ask before there is a server.
const UNKNOWN_URLS = {
  single: "redis://127.0.0.1",
  replicated: "redis://127.0.0.1",
  sentinel: "redis+sentinel://127.0.0.1/main",
  cluster: "redis+cluster://127.0.0.1",
};

/** All laws, or those that are wanted by their ids, through a client on a topology of its own. */
export function checkTopology(
  kind: keyof typeof STARTS,
  name: ClientName,
  terms: Partial<RedisTerms> = {},
  wanted = /^L/,
): void {
  let topology: Topology;
  const relays = new Map<Engine, readonly Relay[]>();
  const closers = new Set<() => void>();

  before(async () => {
    topology = await STARTS[kind]();
  });
  after(async () => {
    for (const close of closers) close();
    for (const relay of [...relays.values()].flat()) await relay.close();
    await topology.stop();
  });

  /** By ways that can be cut, or hold requests back. */
  const open = async (through = (client: RedisClient) => client) => {
    const own = await Promise.all(topology.ports.map((port) => Relay.start(port)));
    const way = new Map(topology.ports.map((port, i) => [port, own[i]!.port]));
    const { client, close } = await topology.client(name, (port) => way.get(port)!);
    const seam = seamOf(through(client));
    const engine = new RedisEngine(seam, { ...REDIS_DEFAULTS, ...terms }, () => {
      close();
      closers.delete(close);
      for (const relay of own) void relay.close();
      relays.delete(engine);
    });
    relays.set(engine, own);
    closers.add(close);
    await engine.open();
    if (kind === "cluster") await meet(engine, MEETINGS);
    if (kind === "replicated") await meet(engine, MEETINGS.slice(0, 1));
    return engine;
  };
  const each = (engine: Engine, act: (relay: Relay) => void) => {
    for (const relay of relays.get(engine) ?? []) act(relay);
  };

  const harness: Harness = {
    name: `redis ${kind} through ${name}`,
    traits: REDIS_TRAITS,
    get url() {
      return topology?.url ?? UNKNOWN_URLS[kind];
    },
    open: () => open(),
    reset: () => topology.reset(),
    age: (resource, ms) => age(topology.admin, resource, ms),
    silence: (resource, ms) => silence(topology.admin, resource, ms),
    truth: (resource) => truth(topology.admin, resource),
    serverTimeUs: () => sumOf(topology.servers.map(({ pid }) => processorTimeUs(pid))),
    sever: (engine) => {
      each(engine, (relay) => relay.cut());
      return () => each(engine, (relay) => relay.mend());
    },
    relayed: async () => {
      const engine = await open();
      return {
        engine,
        hold: () => each(engine, (relay) => relay.hold()),
        deliver: () => each(engine, (relay) => relay.deliver()),
      };
    },
    misanswered: async () => {
      let alter = (answer: unknown) => answer;
      const engine = await open((client) => misanswering(client, (answer) => alter(answer)));
      const answerWith = (shape: string | null) => {
        alter = shape === null ? (answer) => answer : SHAPES[shape]!;
      };
      return { engine, shapes: Object.keys(SHAPES), answerWith };
    },
    restart: () => topology.restart(),
  };
  checkLaws(harness, (title, run) => {
    if (wanted.test(title)) test(`${kind}, ${name}: ${title}`, run);
  });
}
