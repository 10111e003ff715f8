import type { Redis } from "ioredis";
import type { OpenContext } from "../../measuring/suite.js";

/** An ioredis with its defaults, and with auto-pipelining where many calls are made at once. */
export async function ioredisFor({ url, pipelining }: OpenContext): Promise<Redis> {
  return openIoredis(url, pipelining);
}

// Clients are loaded on demand: loading takes long, and a process needs only one of them.
export async function openIoredis(url: string, enableAutoPipelining: boolean): Promise<Redis> {
  const { Redis } = await import("ioredis");
  const client = new Redis(url, { enableAutoPipelining, lazyConnect: true });
  await client.connect();
  return client;
}

/** A node-redis with its defaults. */
export async function openNodeRedis(url: string) {
  const { createClient } = await import("redis");
  const client = createClient({ url });
  await connected(client);
  return client;
}

/** Without the timeout of each command, which takes most of node-redis' time. */
export async function openQuickNodeRedis(url: string) {
  // Undefined turns the timeout off. Its types do not allow undefined here, but its code does.
  const commandOptions = { timeout: undefined } as object;
  const { createClient } = await import("redis");
  const client = createClient({ url, commandOptions });
  await connected(client);
  return client;
}

async function connected(client: {
  on(event: "error", listener: (error: Error) => void): unknown;
  connect(): Promise<unknown>;
}): Promise<void> {
  // Commands that were lost with the connection reject by themselves.
  client.on("error", () => {});
  await client.connect();
}
