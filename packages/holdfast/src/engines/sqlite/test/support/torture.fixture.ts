import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "../../../../connect.js";
import type { BackendFault, Place } from "../../../../test-support/torture/place.fixture.js";
import { openDatabase } from "../../file/database.js";
import { resolveSqlite } from "../../options.js";
import { trueGrants } from "./harness.fixture.js";
import { SqliteTestServer } from "./test-server.fixture.js";

const TTL_MS = 1_500;
const LONGEST_LOCK_MS = 600;
const BEGINS = 1_000;

/** One file. The faults are processes that die, that stop, or that keep the write lock. */
export async function sqlitePlace(): Promise<Place> {
  const server = new SqliteTestServer();
  await (await connect(server.url)).close();
  const records = await openDatabase(resolveSqlite({ path: server.path }), "quick");
  return {
    ttlMs: TTL_MS,
    can: { shared: true, limits: true, lockDelay: true },
    url: () => server.url,
    directUrl: server.url,
    noticesDeath: true,
    faults: [locked(server.path)],
    truth: (resource) => trueGrants(records, resource),
    async [Symbol.asyncDispose]() {
      records.close();
      await server[Symbol.asyncDispose]();
    },
  };
}

/** Many processes write at once. SQLite's own wait would block this process, so this retries. */
async function begin(client: { exec(sql: string): void }): Promise<void> {
  for (let tries = 0; ; tries++) {
    try {
      return client.exec("BEGIN IMMEDIATE");
    } catch (error) {
      if (tries === BEGINS) throw error;
      await sleep(5);
    }
  }
}

/** Another connection keeps the write lock for a while. */
function locked(path: string): BackendFault {
  return {
    name: "file locked",
    inflict: async (random) => {
      const client = await openDatabase(resolveSqlite({ path }), "quick");
      try {
        await begin(client);
        await sleep(random(LONGEST_LOCK_MS));
        client.exec("ROLLBACK");
      } finally {
        client.close();
      }
    },
  };
}
