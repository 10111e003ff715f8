import { systemClock, type Timer } from "../../clock.js";
import { EngineError, MissingPeerError, UsageError } from "../../errors.js";
import { emit } from "../../events.js";
import type { EngineUrl } from "../../url.js";
import type { IoRedisClient, IoRedisSubscriber, NodeRedisClient, RedisClient } from "./client.js";

interface Opened {
  readonly client: RedisClient;
  close(): void;
}

const CONNECT_TIMEOUT_MS = 5_000;
const LONGEST_PAUSE_MS = 2_000;

/** A client of our own for a URL: node-redis where it is installed, else ioredis. */
export async function openFromUrl(url: EngineUrl): Promise<Opened> {
  const address = addressOf(url);
  const nodeRedis = await ifInstalled<NodeRedisModule>(() => import("redis"));
  if (nodeRedis !== null) return openNodeRedis(nodeRedis, address);
  const ioredis = await ifInstalled<IoRedisModule>(() => import("ioredis"));
  if (ioredis !== null) return openIoRedis(ioredis, address);
  throw new MissingPeerError(
    'neither "redis" (node-redis) nor "ioredis" is installed. Run: npm install redis',
  );
}

interface Address {
  readonly host: string;
  readonly port: number;
  readonly username: string | null;
  readonly password: string | null;
  readonly database: number;
  readonly tls: boolean;
}

function addressOf({ scheme, hosts, path, username, password }: EngineUrl): Address {
  const [first, ...more] = hosts;
  if (first === undefined || more.length > 0) {
    throw new UsageError(`${scheme}:// takes one host, like "${scheme}://127.0.0.1:6379"`);
  }
  const database = path === "" || path === "/" ? 0 : Number(path.slice(1));
  if (!Number.isInteger(database) || database < 0) {
    throw new UsageError(`the path of a ${scheme}:// URL is a database number, got "${path}"`);
  }
  const { host } = first;
  return { host, port: first.port ?? 6379, username, password, database, tls: scheme === "rediss" };
}

type NodeRedisModule = {
  createClient(
    options: object,
  ): NodeRedisClient & { on(e: "error", l: (e: Error) => void): void; unref(): void };
};

async function openNodeRedis(module: NodeRedisModule, address: Address): Promise<Opened> {
  const { host, port, username, password, database, tls } = address;
  const client = module.createClient({
    socket: {
      ...{ host, port, tls, connectTimeout: CONNECT_TIMEOUT_MS },
      reconnectStrategy: (tries: number) => Math.min(50 * 2 ** tries, LONGEST_PAUSE_MS),
    },
    ...(username === null ? {} : { username }),
    ...(password === null ? {} : { password }),
    database,
  });
  const lastError = remember(client);
  const opened = { client, close: () => client.destroy() };
  await ready(opened, address, client.connect(), lastError);
  // A held lease alone does not keep a process alive; a call under way has a timer that does.
  client.unref();
  return opened;
}

type IoRedisModule = {
  Redis: new (options: object) => IoRedisClient & IoRedisSubscriber & { connect(): Promise<void> };
};

async function openIoRedis({ Redis }: IoRedisModule, address: Address): Promise<Opened> {
  const { host, port, username, password, database, tls } = address;
  const client = new Redis({
    ...{ host, port, db: database, lazyConnect: true, connectTimeout: CONNECT_TIMEOUT_MS },
    ...(username === null ? {} : { username }),
    ...(password === null ? {} : { password }),
    ...(tls ? { tls: {} } : {}),
    retryStrategy: (tries: number) => Math.min(50 * 2 ** tries, LONGEST_PAUSE_MS),
  });
  const lastError = remember(client);
  client.on("connect", () => client.stream?.unref());
  const opened = { client, close: () => client.disconnect() };
  return ready(opened, address, client.connect(), lastError);
}

/** A server that is not there is told at connect; one that goes away later is waited for. */
async function ready(
  opened: Opened,
  address: Address,
  connected: Promise<unknown>,
  lastError: () => Error | null,
): Promise<Opened> {
  let timer: Timer | undefined;
  try {
    await Promise.race([
      connected,
      new Promise((_, reject) => {
        const late = () => reject(new Error("no connection in time"));
        timer = systemClock.timer(CONNECT_TIMEOUT_MS, late, true);
      }),
    ]);
    return opened;
  } catch (error) {
    const cause = lastError() ?? error;
    opened.close();
    throw new EngineError(
      `no Redis at ${address.host}:${address.port}: ${(cause as Error).message}`,
      { effect: "none", retryable: true, cause },
    );
  } finally {
    timer?.cancel();
  }
}

async function ifInstalled<T>(load: () => Promise<unknown>): Promise<T | null> {
  try {
    return (await load()) as T;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "ERR_MODULE_NOT_FOUND" || code === "MODULE_NOT_FOUND") return null;
    throw error;
  }
}

/** Clients try again by themselves; what kept them from connecting is told, and kept for the message. */
function remember(client: { on(e: "error", l: (e: Error) => void): unknown }): () => Error | null {
  let last: Error | null = null;
  client.on("error", (error) => {
    last = error;
    emit("failed", () => ({ during: "connection", error }));
  });
  return () => last;
}
