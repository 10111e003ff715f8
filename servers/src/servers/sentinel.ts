import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { ensure } from "../installing/install.js";
import { freePorts } from "../running/ports.js";
import { allOrNone, ServerProcess } from "../running/process.js";
import { type RedisServer, startRedis } from "./redis.js";
import { eventually, redisCli } from "./redis-cli.js";

const REPLICAS = 2;
const SENTINELS = 3;
const QUORUM = 2;
const READY_MS = 60_000;
const FAILOVER_MS = 60_000;
/** The longest silence of a primary before another replaces it. */
const DOWN_AFTER_MS = 1_000;

export interface SentinelServers extends AsyncDisposable {
  /** The name under which the sentinels know the primary. */
  readonly name: string;
  readonly sentinelPorts: readonly number[];
  /** The first was the primary at the start, the others its replicas. */
  readonly servers: readonly RedisServer[];
  /** The primary that the sentinels name now. */
  primary(): Promise<RedisServer>;
  /** Waits until the sentinels name another primary than this, and it can be written to. */
  failedOver(from: RedisServer): Promise<RedisServer>;
  stop(): Promise<void>;
}

/** A primary with two replicas, watched by three sentinels, all on free ports of 127.0.0.1. */
export async function startSentinel(): Promise<SentinelServers> {
  const servers: RedisServer[] = [];
  const sentinels: ServerProcess[] = [];
  const stop = async () => {
    // Sentinels first. Otherwise they would start a failover while the servers stop.
    await Promise.all(sentinels.map((sentinel) => sentinel.stop()));
    await Promise.all(servers.map((server) => server.stop()));
  };
  try {
    const first = await startRedis({ args: REPLICATION });
    servers.push(first);
    const replicaOf = ["--replicaof", `127.0.0.1 ${first.port}`];
    const replicas = Array.from({ length: REPLICAS }, () =>
      startRedis({ args: [...REPLICATION, ...replicaOf] }),
    );
    servers.push(...(await allOrNone(replicas)));
    const sentinelPorts = await freePorts(SENTINELS);
    sentinels.push(...sentinelPorts.map((port) => sentinel(port, first.port)));
    await Promise.all(sentinels.map((one) => one.start()));
    await Promise.all(sentinelPorts.map((port) => complete(port)));
    return group(servers, sentinelPorts, stop);
  } catch (error) {
    await stop();
    throw error;
  }
}

const NAME = "main";
// Replicas are there at once instead of after the five seconds that gather more of them.
const REPLICATION = ["--repl-diskless-sync-delay", "0"];

function group(
  servers: readonly RedisServer[],
  sentinelPorts: readonly number[],
  stop: () => Promise<void>,
): SentinelServers {
  const primary = async () => {
    const port = await primaryPort(sentinelPorts);
    const found = servers.find((server) => server.port === port);
    if (found === undefined) throw new Error(`the sentinels name port ${port}, which is not ours`);
    return found;
  };
  return {
    name: NAME,
    sentinelPorts,
    servers,
    primary,
    failedOver: (from) =>
      eventually("a failover", FAILOVER_MS, async () => {
        const now = await primary();
        if (now === from) return null;
        return /^master/.test(await redisCli(now.port, "ROLE")) ? now : null;
      }),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/** The answer of most sentinels. One may not know of a failover yet. */
async function primaryPort(sentinelPorts: readonly number[]): Promise<number> {
  const answers = await Promise.all(
    sentinelPorts.map(async (port) => {
      const lines = await redisCli(port, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME);
      return Number(lines.split("\n")[1]);
    }),
  );
  const agreed = answers.find((port) => answers.filter((p) => p === port).length >= QUORUM);
  if (agreed === undefined) throw new Error(`the sentinels do not agree: ${answers}`);
  return agreed;
}

function sentinel(port: number, primary: number): ServerProcess {
  return new ServerProcess({
    name: "sentinel",
    command: (folder) => {
      // Sentinels write into their own configuration, so each has a file of its own.
      const path = join(folder, "sentinel.conf");
      writeFileSync(path, configuration(port, primary, folder));
      return [ensure("redis-server"), path, "--sentinel"];
    },
    probe: async () => void (await redisCli(port, "PING")),
  });
}

function configuration(port: number, primary: number, folder: string): string {
  return [
    `port ${port}`,
    "bind 127.0.0.1",
    `dir ${folder}`,
    `sentinel monitor ${NAME} 127.0.0.1 ${primary} ${QUORUM}`,
    `sentinel down-after-milliseconds ${NAME} ${DOWN_AFTER_MS}`,
    `sentinel failover-timeout ${NAME} 3000`,
    `sentinel parallel-syncs ${NAME} ${REPLICAS}`,
    "",
  ].join("\n");
}

/**
 * Waits until a sentinel knows all the others and both replicas. Before that it cannot fail over.
 */
function complete(port: number): Promise<true> {
  return eventually("a sentinel that knows everybody", READY_MS, async () => {
    const lines = (await redisCli(port, "SENTINEL", "MASTER", NAME)).split("\n");
    const field = (name: string) => Number(lines[lines.indexOf(name) + 1]);
    const known =
      field("num-slaves") === REPLICAS && field("num-other-sentinels") === SENTINELS - 1;
    if (!known) return null;
    const replicas = await redisCli(port, "SENTINEL", "REPLICAS", NAME);
    const linked = replicas.match(/^master-link-status\nok$/gm)?.length ?? 0;
    return linked === REPLICAS ? true : null;
  });
}
