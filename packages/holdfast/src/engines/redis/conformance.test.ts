import { after, before, test } from "node:test";
import { type RedisServer, Relay, startRedis } from "@holdfast/servers";
import { Redis } from "ioredis";
import { createClient } from "redis";
import { checkLaws, type Harness } from "../../conformance/index.js";
import type { Engine } from "../../engine.js";
import { age } from "./age.fixture.js";
import { seamOf } from "./client.js";
import { REDIS_TRAITS, RedisEngine } from "./engine.js";
import { REDIS_DEFAULTS } from "./options.js";

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
    age: (resource, ms) => age(admin, resource, ms),
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
