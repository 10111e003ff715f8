import { setTimeout as sleep } from "node:timers/promises";
import { startRedis } from "@holdfast/servers";
import { Redis } from "ioredis";
import {
  hangFault,
  relayFaults,
  relaysTo,
  restartFault,
} from "../../../../test-support/torture/faults.fixture.js";
import {
  type BackendFault,
  disposeAll,
  type Place,
} from "../../../../test-support/torture/player.fixture.js";
import { truth } from "./record.fixture.js";

const TTL_MS = 1_000;

/** A Redis that saves every write before it answers, and a relay for each process. */
export async function redisPlace(): Promise<Place> {
  const server = await startRedis({ args: ["--appendonly", "yes", "--appendfsync", "always"] });
  const relays = (await relaysTo([server.port])).flat();
  const admin = new Redis({ port: server.port, retryStrategy: () => 20 });
  admin.on("error", () => {});
  return {
    ttlMs: TTL_MS,
    can: { shared: true, limits: true, lockDelay: true },
    url: (index) => `redis://127.0.0.1:${relays[index]!.port}`,
    directUrl: server.url,
    faults: [
      ...relayFaults(relays, TTL_MS * 1.5),
      ...serverFaults(admin),
      hangFault(() => server, TTL_MS * 1.5),
      restartFault(() => server),
    ],
    truth: (resource) => truth(admin, resource),
    async [Symbol.asyncDispose]() {
      admin.disconnect();
      await disposeAll([server, ...relays]);
    },
  };
}

/** Faults that exist only with Redis. */
function serverFaults(admin: Redis): BackendFault[] {
  const tell = (name: string, ...command: [string, ...string[]]): BackendFault => ({
    name,
    inflict: async () => void (await admin.call(...command)),
  });
  return [
    tell("pushes cut", "CLIENT", "KILL", "TYPE", "pubsub"),
    tell("scripts forgotten", "SCRIPT", "FLUSH"),
    {
      name: "clients paused",
      inflict: async (random) => {
        const ms = random(TTL_MS);
        await admin.call("CLIENT", "PAUSE", String(ms), "WRITE");
        await sleep(ms);
      },
    },
  ];
}
