import { startRedis } from "@holdfast/servers";
import { Redis } from "ioredis";
import type { BenchServer, Traces } from "../../measuring/suite.js";

const KEYS_A_CALL = 1_000;

/** Starts a Redis, with a connection that only reads. */
export async function startTestServer(): Promise<BenchServer> {
  const server = await startRedis();
  const client = new Redis(server.url);
  // When the server is gone, the next call rejects. The event adds nothing.
  client.on("error", () => {});
  const number = async (section: string, field: string): Promise<number> => {
    const found = new RegExp(`^${field}:(\\d+)`, "m").exec(await client.info(section));
    if (found === null) throw new Error(`INFO ${section} has no ${field}`);
    return Number(found[1]);
  };
  return {
    url: server.url,
    roundTrip: () => client.ping(),
    async calls(commands: readonly string[]) {
      const stats = await client.info("commandstats");
      const counted = stats.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm);
      return [...counted]
        .filter(([, name]) => commands.includes(name!))
        .reduce((sum, [, , calls]) => sum + Number(calls), 0);
    },
    content: {
      async held({ key }: Traces, resources: readonly string[]) {
        let held = 0;
        for (let from = 0; from < resources.length; from += KEYS_A_CALL) {
          held += await client.exists(...resources.slice(from, from + KEYS_A_CALL).map(key));
        }
        return held;
      },
      keys: () => client.dbsize(),
      bytes: () => number("memory", "used_memory"),
    },
    async [Symbol.asyncDispose]() {
      client.disconnect();
      await server.stop();
    },
  };
}
