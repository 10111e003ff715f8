import { join } from "node:path";
import type { Harness } from "../../conformance/index.js";
import { openDatabase } from "./database.js";
import { SQLITE_TRAITS } from "./engine.js";
import { sqliteEngine } from "./index.js";
import { resolveSqlite } from "./options.js";

const TABLES = ["grants", "waiters", "peers", "tombstones", "sightings"];

/** On a file in this folder, which is made at the first use. */
export function harness(folder: string): Harness {
  const path = join(folder, "locks.db");
  return {
    name: "sqlite",
    traits: SQLITE_TRAITS,
    url: `sqlite:${path}`,
    open: () => sqliteEngine({ path }),
    // The counter stays: that tokens rise across whatever happened before is part of the laws.
    reset: () => run(path, TABLES.map((table) => `DELETE FROM ${table};`).join("")),
    age: (resource, ms) =>
      run(
        path,
        `UPDATE grants SET expires_at = expires_at - ${ms}
         WHERE resource = '${resource.replaceAll("'", "''")}'`,
      ),
    // There is no server to restart: every law opens the file anew, and durability.test.ts cuts the power.
    restart: () => {},
  };
}

/** Through the engine's own binding: a second SQLite in one process would drop its locks. */
async function run(path: string, statements: string): Promise<void> {
  const engine = sqliteEngine({ path });
  await engine.inspect("any", { startedAt: 0, timeoutMs: 5_000 });
  const client = await openDatabase(resolveSqlite({ path }), "quick");
  client.exec("PRAGMA busy_timeout = 2000");
  client.exec(statements);
  client.close();
  await engine.close();
}
