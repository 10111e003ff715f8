import { checkEngine } from "./core/input/handed-in.js";
import { orMeantUrl } from "./core/input/meant-url.js";
import type { Engine } from "./engine.js";
import { UnsupportedError, UsageError } from "./errors.js";
import { Locks } from "./locks.js";
import { type ConnectOptions, resolveConnect } from "./options.js";
import { type EngineUrl, parseEngineUrl } from "./url.js";

type OpenFromUrl = (url: EngineUrl) => Engine | Promise<Engine>;

/** Loaded on demand: connecting to one engine never loads the code or client of another. */
const ENGINES: Record<string, () => Promise<OpenFromUrl>> = {
  etcd: async () => (await import("./engines/etcd/index.js")).etcdFromUrl,
  memory: async () => (await import("./engines/memory/index.js")).memoryFromUrl,
  mysql: async () => (await import("./engines/mysql/index.js")).mysqlFromUrl,
  postgres: async () => (await import("./engines/postgres/index.js")).postgresFromUrl,
  postgresql: async () => (await import("./engines/postgres/index.js")).postgresFromUrl,
  redlock: async () => (await import("./engines/quorum/index.js")).quorumFromUrl,
  redis: async () => (await import("./engines/redis/index.js")).redisFromUrl,
  "redis+cluster": async () => (await import("./engines/redis/index.js")).redisFromUrl,
  "redis+sentinel": async () => (await import("./engines/redis/index.js")).redisFromUrl,
  rediss: async () => (await import("./engines/redis/index.js")).redisFromUrl,
  sqlite: async () => (await import("./engines/sqlite/index.js")).sqliteFromUrl,
  zookeeper: async () => (await import("./engines/zookeeper/index.js")).zookeeperFromUrl,
};

const WITHOUT_HOST = ["memory", "sqlite"];

/** Opens locks on an engine, given as a URL or as an engine object. */
export async function connect(
  target: string | URL | Engine,
  options: ConnectOptions = {},
): Promise<Locks> {
  const text = target instanceof URL ? target.href : target;
  if (typeof text !== "string") {
    checkEngine(text, "connect", "a URL or an engine");
    return new Locks(text, options);
  }
  const url = readUrl(text);
  // Checked before anything is opened. Options that depend on the engine are checked in new Locks.
  resolveConnect(options, true);
  const open = await engineFor(url, text)();
  const engine = await open(url);
  try {
    return new Locks(engine, options);
  } catch (error) {
    await engine.close();
    throw error;
  }
}

/** Parses the URL, or refuses it and suggests what was probably meant. */
export function readUrl(text: string): EngineUrl {
  const url = parseEngineUrl(text, orMeantUrl(text, Object.keys(ENGINES)));
  const { scheme, hosts, path } = url;
  const isHostless = hosts.length === 0 && path !== "" && !path.startsWith("/");
  if (isHostless && Object.hasOwn(ENGINES, scheme) && !WITHOUT_HOST.includes(scheme)) {
    // Anything else may be a password, so it is not shown.
    const rest = /^[a-z0-9.-]+(:\d{1,5})?$/i.test(path) ? path : "…";
    throw new UsageError(
      `after ${scheme}: come two slashes and a host; did you mean "${scheme}://${rest}"?`,
    );
  }
  return url;
}

/** Returns the loader of a URL's engine. text: the URL as it was written. */
export function engineFor({ scheme }: EngineUrl, text: string): () => Promise<OpenFromUrl> {
  const load = Object.hasOwn(ENGINES, scheme) ? ENGINES[scheme] : undefined;
  if (load !== undefined) return load;
  const names = Object.keys(ENGINES);
  const has = names.map((name) => `${name}:`).join(", ");
  const meant = orMeantUrl(text, names);
  const end = meant === "" ? `; this version has ${has}` : `${meant} This version has ${has}`;
  throw new UnsupportedError(`no engine for "${scheme}:"${end}`);
}
