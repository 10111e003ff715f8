import type { Redis } from "ioredis";
import type { OpenContext } from "../../measuring/suite.js";

/** An ioredis as it comes, but for its auto-pipelining where many calls at once are to come. */
export async function ioredisFor({ url, pipelining }: OpenContext): Promise<Redis> {
  return openIoredis(url, pipelining);
}

// Both are loaded when needed: they take long, and a process has use for one.
export async function openIoredis(url: string, enableAutoPipelining: boolean): Promise<Redis> {
  const { Redis } = await import("ioredis");
  const client = new Redis(url, { enableAutoPipelining, lazyConnect: true });
  await client.connect();
  return client;
}

/** A node-redis as it comes. */
export async function openNodeRedis(url: string) {
  const { createClient } = await import("redis");
  const client = createClient({ url });
  await connected(client);
  return client;
}

/** Without its timeout a command, which takes most of its time. */
export async function openQuickNodeRedis(url: string) {
  // Its types know no undefined here, its code does: that is how it is turned off.
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
