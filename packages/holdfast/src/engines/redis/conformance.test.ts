import { after, before, test } from "node:test";
import { type RedisServer, Relay, startRedis } from "@holdfast/servers";
import { Redis } from "ioredis";
import { createClient } from "redis";
import { checkLaws, type Harness } from "../../conformance/index.js";
import type { Engine } from "../../engine.js";
import { seamOf } from "./client.js";
import { REDIS_TRAITS, RedisEngine } from "./engine.js";
import { keyOf, keysOf } from "./keys.js";
import { REDIS_DEFAULTS } from "./options.js";

// Lets a resource's grants end earlier, as if so much time had passed for it alone.
const AGE = `
  local ms, time = tonumber(ARGV[1]), redis.call('TIME')
  local all = redis.call('HGETALL', KEYS[4])
  for i = 1, #all, 2 do
    local head, ends, label = string.match(all[i + 1], '^(%d+:%d+:%d+:%d+:%d:%d+:)(%d+)(:.*)$')
    redis.call('HSET', KEYS[4], all[i], head .. string.format('%.0f', tonumber(ends) - ms) .. label)
  end
  local left = redis.call('PTTL', KEYS[1])
  if left >= 0 then
    if left > ms then redis.call('PEXPIRE', KEYS[1], left - ms) else redis.call('DEL', KEYS[1]) end
  end`;

let server: RedisServer;
let admin: Redis;
const relays = new Map<Engine, Relay>();
const closers = new Set<() => void>();

before(async () => {
  server = await startRedis();
  admin = new Redis(server.port);
});

after(async () => {
  admin.disconnect();
  for (const close of closers) close();
  for (const relay of relays.values()) await relay.close();
  await server.stop();
});

const CLIENTS = { "node-redis": nodeRedis, ioredis: ioRedis };
const only = process.env.HOLDFAST_REDIS_CLIENT;

for (const [name, connectTo] of Object.entries(CLIENTS)) {
  if (only !== undefined && only !== name) continue;
  const harness: Harness = {
    name: `redis through ${name}`,
    traits: REDIS_TRAITS,
    get url() {
      return server?.url ?? "redis://127.0.0.1";
    },
    open: async () => {
      const relay = await Relay.start(server.port);
      const { client, close } = await connectTo(relay.port);
      const engine = new RedisEngine(seamOf(client), REDIS_DEFAULTS, () => {
        close();
        closers.delete(close);
        void relay.close();
        relays.delete(engine);
      });
      relays.set(engine, relay);
      closers.add(close);
      await engine.open();
      return engine;
    },
    reset: async () => void (await admin.flushall()),
    age: async (resource, ms) => {
      const keys = keysOf(keyOf(REDIS_DEFAULTS.prefix, resource));
      await admin.eval(AGE, keys.length, ...keys, String(ms));
    },
    sever: (engine) => {
      const relay = relays.get(engine)!;
      relay.cut();
      return () => relay.mend();
    },
    restart: () => server.restart(),
  };
  checkLaws(harness, (title, run) => test(`${name}: ${title}`, run));
}

async function nodeRedis(port: number) {
  const client = createClient({ socket: { host: "127.0.0.1", port, reconnectStrategy: () => 20 } });
  client.on("error", () => {});
  await client.connect();
  return { client, close: () => client.destroy() };
}

async function ioRedis(port: number) {
  const client = new Redis({ host: "127.0.0.1", port, lazyConnect: true, retryStrategy: () => 20 });
  client.on("error", () => {});
  await client.connect();
  return { client, close: () => client.disconnect() };
}
