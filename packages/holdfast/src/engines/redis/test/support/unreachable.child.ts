// Asks a server that does not exist, and closes: unreachable <port> <ioredis | node-redis>. Prints
// the error code and how long closing took. Then nothing keeps the process alive.
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
