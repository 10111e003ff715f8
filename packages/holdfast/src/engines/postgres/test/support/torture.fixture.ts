import { startPostgres } from "@holdfast/servers";
import { sqlPlace } from "../../../../test-support/sql/torture.fixture.js";
import type { Place } from "../../../../test-support/torture/place.fixture.js";
import { PostgresHarness, quietPool } from "./harness.fixture.js";

/** A database that makes every commit durable before it answers. */
export async function postgresPlace(): Promise<Place> {
  const server = await startPostgres({ durable: true });
  const records = new PostgresHarness("postgres", () => ({ server }));
  const admin = quietPool({ port: server.port, max: 1 });
  return sqlPlace(server, {
    truth: (resource) => records.truth(resource),
    async endSessions() {
      await admin
        .query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid % 3 = 0")
        // The admin's own session may be among them.
        .catch(() => {});
    },
    async end() {
      await records.end();
      await admin.end();
    },
  });
}
