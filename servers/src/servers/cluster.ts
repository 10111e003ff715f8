import { freePorts } from "../running/ports.js";
import { type RedisServer, startRedis } from "./redis.js";
import { eventually, redisCli } from "./redis-cli.js";

const PRIMARIES = 3;
const NODES = 2 * PRIMARIES;
const READY_MS = 60_000;
const FAILOVER_MS = 60_000;
const NODE_TIMEOUT_MS = 1_000;

export interface ClusterServers extends AsyncDisposable {
  readonly ports: readonly number[];
  readonly nodes: readonly RedisServer[];
  /** The node that serves the slot of this key now. */
  primaryOf(key: string): Promise<RedisServer>;
  replicaOf(primary: RedisServer): Promise<RedisServer>;
  /** Waits until another node serves the key and the cluster is complete again. */
  failedOver(key: string, from: RedisServer): Promise<RedisServer>;
  stop(): Promise<void>;
}

/** Three primaries with a replica each, on free ports of 127.0.0.1. */
export async function startCluster(): Promise<ClusterServers> {
  const ports = await freePorts(2 * NODES);
  const starts = Array.from({ length: NODES }, (_, i) => node(ports[i]!, ports[NODES + i]!));
  const outcomes = await Promise.allSettled(starts);
  const nodes = outcomes.flatMap((o) => (o.status === "fulfilled" ? [o.value] : []));
  const stop = async () => void (await Promise.all(nodes.map((server) => server.stop())));
  try {
    for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
    const addresses = nodes.map(({ port }) => `127.0.0.1:${port}`);
    const create = ["--cluster", "create", ...addresses, "--cluster-replicas", "1"];
    await redisCli(nodes[0]!.port, ...create, "--cluster-yes");
    await Promise.all(nodes.map(({ port }) => whole(port, NODES)));
  } catch (error) {
    await stop();
    throw error;
  }
  const cluster = new Cluster(nodes);
  return {
    ports: nodes.map(({ port }) => port),
    nodes,
    primaryOf: (key) => cluster.primaryOf(key),
    replicaOf: (primary) => cluster.replicaOf(primary),
    failedOver: (key, from) => cluster.failedOver(key, from),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

function node(port: number, busPort: number): Promise<RedisServer> {
  const args = [
    ["--cluster-enabled", "yes"],
    ["--cluster-port", String(busPort)],
    ["--cluster-node-timeout", String(NODE_TIMEOUT_MS)],
    ["--cluster-config-file", "nodes.conf"],
    ["--repl-diskless-sync-delay", "0"],
  ];
  return startRedis({ port, args: args.flat() });
}

/** One line of CLUSTER NODES. */
interface ClusterLine {
  readonly id: string;
  readonly port: number;
  readonly isPrimary: boolean;
  readonly hasFailed: boolean;
  readonly follows: string;
  readonly slots: readonly (readonly [from: number, to: number])[];
}

class Cluster {
  readonly #nodes: readonly RedisServer[];

  constructor(nodes: readonly RedisServer[]) {
    this.#nodes = nodes;
  }

  async primaryOf(key: string): Promise<RedisServer> {
    const { lines, port } = await this.#ask();
    const slot = Number(await redisCli(port, "CLUSTER", "KEYSLOT", key));
    const serves = (line: ClusterLine) =>
      line.slots.some(([from, to]) => from <= slot && slot <= to);
    return this.#server(lines.find((line) => line.isPrimary && !line.hasFailed && serves(line)));
  }

  async replicaOf(primary: RedisServer): Promise<RedisServer> {
    const { lines } = await this.#ask();
    const id = lines.find((line) => line.port === primary.port)?.id;
    return this.#server(lines.find((line) => line.follows === id && !line.hasFailed));
  }

  failedOver(key: string, from: RedisServer): Promise<RedisServer> {
    return eventually("a failover", FAILOVER_MS, async () => {
      const now = await this.primaryOf(key);
      if (now === from) return null;
      const role = await redisCli(now.port, "ROLE");
      const info = await redisCli(now.port, "CLUSTER", "INFO");
      return /^master/.test(role) && info.includes("cluster_state:ok") ? now : null;
    });
  }

  #server(line: ClusterLine | undefined): RedisServer {
    const found = this.#nodes.find(({ port }) => port === line?.port);
    if (found === undefined) throw new Error("no node of this cluster does that now");
    return found;
  }

  /** How the first node that answers sees the cluster. */
  async #ask(): Promise<{ lines: ClusterLine[]; port: number }> {
    const asked = this.#nodes.map(async ({ port }) => {
      const lines = parse(await redisCli(port, "CLUSTER", "NODES"));
      return { lines, port };
    });
    return Promise.any(asked);
  }
}

function parse(text: string): ClusterLine[] {
  return text
    .trim()
    .split("\n")
    .map((line) => {
      const [id = "", address = "", flags = "", follows = "", , , , link = "", ...slots] =
        line.split(" ");
      return {
        id,
        port: Number(/:(\d+)@/.exec(address)?.[1]),
        isPrimary: flags.includes("master"),
        hasFailed: /fail|noaddr/.test(flags) || link === "disconnected",
        follows,
        slots: slots.flatMap((range) => {
          const [from, to = from] = range.split("-").map(Number);
          return from === undefined || Number.isNaN(from) ? [] : [[from, to ?? from] as const];
        }),
      };
    });
}

/** Waits until all slots are served, all nodes know each other, and replicas have their data. */
function whole(port: number, count: number): Promise<true> {
  return eventually("a whole cluster", READY_MS, async () => {
    const info = await redisCli(port, "CLUSTER", "INFO");
    if (!info.includes("cluster_state:ok")) return null;
    const lines = parse(await redisCli(port, "CLUSTER", "NODES"));
    const replicas = lines.filter((line) => !line.isPrimary);
    if (lines.length !== count || replicas.length !== count / 2) return null;
    const role = await redisCli(port, "ROLE");
    return /^master/.test(role) || role.includes("\nconnected\n") ? true : null;
  });
}
