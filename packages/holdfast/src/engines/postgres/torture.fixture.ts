import { Relay, startPostgres } from "@holdfast/servers";
import { prepare } from "../../prepare.js";
import { hangFault, relayFaults, restartFault } from "../../torture/faults.fixture.js";
import { disposeAll, type Fault, type Place, PROCESSES } from "../../torture/player.fixture.js";
import { PostgresHarness, quietPool } from "./harness.fixture.js";

const TTL_MS = 1_500;

/** A database that makes every commit durable before it answers, and a relay for each process. */
export async function postgresPlace(): Promise<Place> {
  const server = await startPostgres({ durable: true });
  await prepare(server.url);
  const relays = await Promise.all(
    Array.from({ length: PROCESSES }, () => Relay.start(server.port)),
  );
  const records = new PostgresHarness("postgres", () => ({ server }));
  const admin = quietPool({ port: server.port, max: 1 });
  return {
    ttlMs: TTL_MS,
    can: { shared: true, limits: true, lockDelay: true },
    url: (index) => server.url.replace(`:${server.port}/`, `:${relays[index]!.port}/`),
    directUrl: server.url,
    faults: [
      ...relayFaults(relays, TTL_MS * 1.5),
      hangFault(() => server, TTL_MS),
      restartFault(() => server),
      sessionsEnded(admin),
    ],
    truth: (resource) => records.truth(resource),
    async [Symbol.asyncDispose]() {
      await records.end();
      await admin.end();
      await disposeAll([server, ...relays]);
    },
  };
}

/** Somebody ends sessions by hand, in the middle of whatever they do. */
function sessionsEnded(admin: ReturnType<typeof quietPool>): Fault {
  return {
    name: "sessions ended",
    inflict: async () => {
      await admin
        .query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid % 3 = 0")
        // Its own session may be among them.
        .catch(() => {});
    },
  };
}
