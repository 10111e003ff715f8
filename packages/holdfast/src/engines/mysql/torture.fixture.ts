import { Relay, startMariadb } from "@holdfast/servers";
import { prepare } from "../../prepare.js";
import { hangFault, relayFaults, restartFault } from "../../torture/faults.fixture.js";
import { disposeAll, type Fault, type Place, PROCESSES } from "../../torture/player.fixture.js";
import { localPool, MysqlHarness } from "./harness.fixture.js";

const TTL_MS = 1_500;

/** A database that makes every commit durable before it answers, and a relay for each process. */
export async function mysqlPlace(): Promise<Place> {
  const server = await startMariadb({ durable: true });
  await prepare(server.url);
  const relays = await Promise.all(
    Array.from({ length: PROCESSES }, () => Relay.start(server.port)),
  );
  const records = new MysqlHarness(() => server);
  const admin = localPool({ port: server.port, connectionLimit: 1 });
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
function sessionsEnded(admin: ReturnType<typeof localPool>): Fault {
  return {
    name: "sessions ended",
    inflict: async () => {
      try {
        const [rows] = await admin.query("SELECT ID FROM information_schema.PROCESSLIST");
        for (const { ID } of (rows as { ID: number }[]).filter((row) => row.ID % 3 === 0)) {
          await admin.query(`KILL ${ID}`);
        }
      } catch {
        // It may have ended its own session, or one that is gone already.
      }
    },
  };
}
