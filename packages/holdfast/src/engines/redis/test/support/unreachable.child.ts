// Asks a server that is not there, and closes: unreachable <port> <ioredis | node-redis>. Says what it
// was told and how long closing took, and then has nothing left to do.
import { Redis } from "ioredis";
import { createClient } from "redis";
import { Locks } from "../../../../locks.js";
import { redisEngine } from "../../index.js";

const [port = "", name = ""] = process.argv.slice(2);
const { client, disconnect } = name === "ioredis" ? ioRedis() : nodeRedis();
const locks = new Locks(redisEngine({ client }));
const told = await locks.acquire("a", { callTimeoutMs: 100 }).catch((error) => error.code);
const started = performance.now();
await locks.close();
console.log(`${told} ${Math.round(performance.now() - started)}`);
disconnect();

function ioRedis() {
  const client = new Redis({ port: Number(port), retryStrategy: () => 20 });
  client.on("error", () => {});
  return { client, disconnect: () => client.disconnect() };
}

function nodeRedis() {
  const socket = { host: "127.0.0.1", port: Number(port), reconnectStrategy: () => 20 };
  const client = createClient({ socket });
  client.on("error", () => {});
  void client.connect().catch(() => {});
  return { client, disconnect: () => client.destroy() };
}
