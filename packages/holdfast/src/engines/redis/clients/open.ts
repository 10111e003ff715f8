import { importPeer } from "../../../core/input/import-peer.js";
import { systemClock, type Timer } from "../../../core/runtime/clock.js";
import { EngineError, MissingPeerError } from "../../../errors.js";
import { emit } from "../../../events.js";
import { clientError } from "../protocol/client-error.js";
import { explain } from "../protocol/failure.js";
import { type Address, showAddress } from "./address.js";
import type { RedisClient } from "./connection.js";
import type {
  IoRedisClient,
  IoRedisClusterClient,
  IoRedisSubscriber,
} from "./ioredis/ioredis-client.js";
import { reconnect } from "./ioredis/reconnect.js";
import { watchSentinels } from "./ioredis/watch-sentinels.js";
import type {
  NodeRedisClient,
  NodeRedisClusterClient,
  NodeRedisSentinelClient,
} from "./node-redis/node-redis-client.js";

interface Opened {
  readonly client: RedisClient;
  close(): void;
}

const CONNECT_TIMEOUT_MS = 5_000;
const LONGEST_PAUSE_MS = 2_000;
const LONGEST_SHORT_PAUSE_MS = 500;

/**
 * Opens a client of our own for a URL. For a single server we prefer node-redis, which Redis
 * recommends. Otherwise we prefer ioredis: it finds a new primary sooner, and lets a process end
 * while it is connected to a Cluster.
 */
export async function openAddress(address: Address): Promise<Opened> {
  const openers = [
    async () => {
      const module = await importPeer<NodeRedisModule>("redis");
      return module && openNodeRedis(module, address);
    },
    async () => {
      const module = await importPeer<IoRedisModule>("ioredis");
      return module && openIoRedis(module, address);
    },
  ];
  if (address.topology !== "single") openers.reverse();
  for (const open of openers) {
    const opened = await open();
    if (opened !== null) return opened;
  }
  throw new MissingPeerError(
    'neither "redis" (node-redis) nor "ioredis" is installed. Run: npm install ' +
      (address.topology === "single" ? "redis" : "ioredis"),
  );
}

// A server without TLS reads our TLS hello as the beginning of a command and waits for the rest.
// These are the errors that the client then gives.
const PERHAPS_NO_TLS = /in time|timeout|ECONNRESET|EPROTO|wrong version number|socket|closed/i;
const NO_TLS = "; perhaps it does not speak TLS, which rediss: and tls=true ask for";

// What clients say when a server of another kind ends the connection, or answers in its own way.
const PERHAPS_NO_REDIS = /ECONNRESET|EPIPE|closed|protocol error|unknown RESP/i;
const NO_REDIS = "; perhaps this is no Redis, or it speaks TLS only, which rediss: asks for";
const ONLY_USER =
  "it wants a password, and the URL has a user name and no password; " +
  "a password without a user name stands behind a colon, like redis://:password@127.0.0.1";

interface Emits {
  on(event: "error", listener: (error: Error) => void): unknown;
}

type NodeRedisModule = {
  createClient(options: object): NodeRedisClient & Emits & { unref(): void };
  createCluster(options: object): NodeRedisClusterClient & Emits;
  createSentinel(options: object): NodeRedisSentinelClient & Emits;
};

async function openNodeRedis(module: NodeRedisModule, address: Address): Promise<Opened> {
  const { hosts, topology, name, database, tls } = address;
  const socket = {
    ...{ tls, connectTimeout: CONNECT_TIMEOUT_MS },
    reconnectStrategy: pause,
  };
  const common = { ...credentials(address), socket };
  if (topology === "cluster") {
    const rootNodes = hosts.map((host) => ({ ...common, socket: { ...socket, ...host } }));
    return ready(module.createCluster({ rootNodes, defaults: common }), address);
  }
  if (topology === "sentinel") {
    const options = {
      // The client may miss the Sentinels' message about a new primary. It polls only with
      // scanInterval.
      ...{ name, sentinelRootNodes: hosts, scanInterval: LONGEST_PAUSE_MS },
      ...{ nodeClientOptions: { ...common, database }, sentinelClientOptions: { socket } },
    };
    return ready(module.createSentinel(options), address);
  }
  const client = module.createClient({ ...common, database, socket: { ...socket, ...hosts[0] } });
  const opened = await ready(client, address);
  // A held lease alone must not keep a process alive. A call in progress does, by its own timer.
  client.unref();
  return opened;
}

type IoRedisModule = {
  Redis: new (options: object) => IoRedisClient & IoRedisSubscriber & Connects;
  Cluster: new (
    nodes: readonly object[],
    options: object,
  ) => IoRedisClusterClient & IoRedisSubscriber & Connects;
};

interface Connects {
  connect(): Promise<unknown>;
}

type IoRedisOpens = Connects & Pick<IoRedisSubscriber, "status" | "on">;

async function openIoRedis({ Redis, Cluster }: IoRedisModule, address: Address): Promise<Opened> {
  const { hosts, topology, name, database, tls } = address;
  const common = {
    ...{ connectTimeout: CONNECT_TIMEOUT_MS, ...credentials(address) },
    ...(tls ? { tls: {} } : {}),
  };
  if (topology === "cluster") {
    const client = new Cluster(hosts, {
      ...{ lazyConnect: true, redisOptions: common, clusterRetryStrategy: pause },
    });
    client.on("+node", (node) => node.on("connect", () => node.stream?.unref()));
    return ready(client, address);
  }
  const wait = topology === "single" ? pause : shortPause;
  // Without these options ioredis speaks to the Sentinels and the servers without TLS.
  const secure = tls ? { sentinelTLS: {}, enableTLSForSentinelMode: true } : {};
  const where = topology === "single" ? hosts[0] : { sentinels: hosts, name, ...secure };
  const client = new Redis({
    ...{ ...common, ...where, db: database, lazyConnect: true },
    ...{ retryStrategy: wait, sentinelRetryStrategy: wait },
  });
  client.on("connect", () => client.stream?.unref());
  if (topology === "single") return ready(client, address);
  const sentinels = hosts.map((host) => ({
    ...{ ...host, retryStrategy: pause },
    ...(tls ? { tls: {} } : {}),
  }));
  const unwatch = watchSentinels(Redis, sentinels, name, () => reconnect(client));
  return ready(client, address, unwatch);
}

function credentials({ username, password }: Address): object {
  return {
    ...(username === null ? {} : { username }),
    ...(password === null ? {} : { password }),
  };
}

function pause(tries: number): number {
  return Math.min(50 * 2 ** tries, LONGEST_PAUSE_MS);
}

/** With Sentinels a client finds a new primary only by asking again, so it asks more often. */
function shortPause(tries: number): number {
  return Math.min(pause(tries), LONGEST_SHORT_PAUSE_MS);
}

/** Fails if no server answers now. Once connected, the client waits for a server that goes away. */
async function ready(
  client: RedisClient & Emits & Connects,
  address: Address,
  closeMore: () => void = () => {},
): Promise<Opened> {
  let lastError: Error | null = null;
  let refused: (error: Error) => void = () => {};
  const several = address.topology !== "single";
  // Clients try again by themselves, so we keep the last error for the message. A final refusal,
  // such as a wrong password, is reported at once: another try would not help.
  client.on("error", (error) => {
    lastError = error;
    emit("failed", () => ({ during: "connection", error: clientError(error) }));
    if (isHopeless(nodeErrorOf(error))) refused(error);
  });
  const close = () => {
    closeMore();
    if ("withCommandOptions" in client) void Promise.resolve(client.destroy()).catch(() => {});
    else client.disconnect();
  };
  let timer: Timer | undefined;
  try {
    await Promise.race([
      several && "status" in client
        ? readyEventually(client as unknown as IoRedisOpens, () => lastError)
        : client.connect(),
      new Promise((_, reject) => {
        refused = reject;
        const late = () => reject(new Error("no connection in time"));
        timer = systemClock.timer(CONNECT_TIMEOUT_MS, late, true);
      }),
    ]);
    return { client, close };
  } catch (error) {
    close();
    throw connectError(nodeErrorOf(lastError ?? error), address);
  } finally {
    timer?.cancel();
  }
}

/**
 * With several servers, the one that is asked first may just have failed. ioredis reports that at
 * once and goes on searching. Only an error that every server would give is final.
 */
function readyEventually(client: IoRedisOpens, lastError: () => Error | null): Promise<void> {
  return new Promise((resolve, reject) => {
    client.on("ready", resolve);
    client.connect().catch((error: unknown) => {
      const said = nodeErrorOf(lastError() ?? error);
      if (isFinal(said) || client.status === "end") reject(said);
    });
  });
}

/** Where a Cluster could not be reached, the error of the node that was asked last. */
function nodeErrorOf(error: unknown): unknown {
  return (error as { lastNodeError?: Error } | null)?.lastNodeError ?? error;
}

/**
 * Whether another try is useless: a wrong password or database. A missing right is not: clients
 * connect without the commands that a user may not use, such as INFO.
 */
function isHopeless(error: unknown): boolean {
  const { reason } = explain(error) as EngineError;
  return reason === "credentials" || reason === "no-database";
}

function isFinal(error: unknown): boolean {
  const known = explain(error);
  return known instanceof EngineError && !known.retryable;
}

function connectError(error: unknown, address: Address): EngineError {
  const cause = clientError(error);
  const where = showAddress(address);
  const { message, effect, retryable, reason } = explain(cause) as EngineError;
  if (effect === "unknown") {
    const [pattern, perhaps] = address.tls
      ? [PERHAPS_NO_TLS, NO_TLS]
      : [PERHAPS_NO_REDIS, NO_REDIS];
    const hint = pattern.test(cause.message) ? perhaps : "";
    return new EngineError(`no Redis at ${where}: ${cause.message}${hint}`, {
      ...{ effect: "none", retryable: true, reason: "unreachable", cause },
    });
  }
  const hasOnlyUser = address.username !== null && address.password === null;
  const says =
    reason === "no-database"
      ? `it has no database ${address.database}`
      : reason === "credentials" && hasOnlyUser
        ? ONLY_USER
        : message;
  return new EngineError(`Redis at ${where}: ${says}`, {
    ...{ effect: "none", retryable, reason, cause },
  });
}
