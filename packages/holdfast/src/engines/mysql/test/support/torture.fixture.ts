import { startMariadb } from "@holdfast/servers";
import { sqlPlace } from "../../../../test-support/sql/torture.fixture.js";
import type { Place } from "../../../../test-support/torture/place.fixture.js";
import { localPool, MysqlHarness } from "./harness.fixture.js";

/** A database that makes every commit durable before it answers. */
export async function mysqlPlace(): Promise<Place> {
  const server = await startMariadb({ durable: true });
  const records = new MysqlHarness(() => server);
  const admin = localPool({ port: server.port, connectionLimit: 1 });
  return sqlPlace(server, {
    truth: (resource) => records.truth(resource),
    async endSessions() {
      try {
        const [rows] = await admin.query("SELECT ID FROM information_schema.PROCESSLIST");
        for (const { ID } of (rows as { ID: number }[]).filter((row) => row.ID % 3 === 0)) {
          await admin.query(`KILL ${ID}`);
        }
      } catch {
        // The admin may have ended its own session, or one that is already gone.
      }
    },
    async end() {
      await records.end();
      await admin.end();
    },
  });
}
