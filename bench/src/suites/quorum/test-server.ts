import { startRedis } from "@holdfast/servers";
import { init } from "holdfast/quorum";
import { Redis } from "ioredis";
import type { BenchServer } from "../../measuring/suite.js";
import { DOWN_PREFIX, membersOf } from "./members.js";
import { SlowRelay } from "./slow-relay.js";

const SERVERS = 6;
const DELAY_MS = 2;

/**
 * Five Redis servers that are 2 ms away each, and a sixth that has stopped: it takes the place of
 * the fifth in a second quorum on the same servers, under another prefix.
 */
export async function startTestServer(): Promise<BenchServer> {
  const servers = await Promise.all(Array.from({ length: SERVERS }, () => startRedis()));
  const clients = servers.map(({ url }) => new Redis(url));
  for (const client of clients) client.on("error", () => {});
  const relays = await Promise.all(servers.map(({ port }) => SlowRelay.start(port, DELAY_MS)));
  const url = `redlock://${relays.map(({ port }) => `127.0.0.1:${port}`).join(",")}`;
  for (const [which, settings] of [
    ["five", {}],
    ["one-down", { prefix: DOWN_PREFIX }],
  ] as const) {
    const nodes = membersOf(url, which).map(({ name, index }) => ({
      name,
      client: clients[index]!,
    }));
    await init({ nodes, ...settings });
  }
  servers.at(-1)!.pause();
  const first = new Redis(relays[0]!.port);
  first.on("error", () => {});
  return {
    url,
    roundTrip: () => first.ping(),
    async calls(commands: readonly string[]) {
      const stats = await Promise.all(clients.slice(0, 5).map((one) => one.info("commandstats")));
      const counted = stats.flatMap((text) => [...text.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)]);
      return counted
        .filter(([, name]) => commands.includes(name!))
        .reduce((sum, [, , calls]) => sum + Number(calls), 0);
    },
    async [Symbol.asyncDispose]() {
      for (const client of [...clients, first]) client.disconnect();
      await Promise.all(relays.map((relay) => relay[Symbol.asyncDispose]()));
      await Promise.all(servers.map((server) => server.stop()));
    },
  };
}
