import { join } from "node:path";
import type { Harness, Misanswered } from "../../../../conformance/index.js";
import { relayedCalls } from "../../../../conformance/wrong-engines/garbling.js";
import { hostInstant, systemClock } from "../../../../core/runtime/clock.js";
import { SQLITE_TRAITS, SqliteEngine } from "../../engine.js";
import type { PreparedStatement, SqlClient } from "../../file/client.js";
import { openDatabase } from "../../file/database.js";
import { sqliteEngine } from "../../index.js";
import { resolveSqlite } from "../../options.js";

const TABLES = ["grants", "waiters", "peers", "tombstones", "sightings"];

/** Uses a database file in this folder. The first use creates it. */
export function harness(folder: string): Harness {
  const path = join(folder, "locks.db");
  return {
    name: "sqlite",
    traits: SQLITE_TRAITS,
    url: `sqlite:${path}`,
    open: () => sqliteEngine({ path }),
    // The counter stays: the laws demand that tokens rise across everything that happened before.
    async reset() {
      const engine = new SqliteEngine(resolveSqlite({ path }));
      await engine.open();
      await beside(path, (client) =>
        client.exec(TABLES.map((table) => `DELETE FROM ${table};`).join("")),
      );
      await engine.close();
    },
    age: (resource, ms) =>
      beside(path, (client) => {
        client
          .prepare("UPDATE grants SET expires_at = expires_at - ?2 WHERE resource = ?1")
          .run(...[resource, ms]);
      }),
    ageTombstones: (_resource, ms) =>
      beside(path, (client) => {
        client.prepare("UPDATE tombstones SET until = until - ?1").run(ms);
      }),
    // There is no server to restart: every law opens the file again, and durability.test.ts
    // simulates a power cut.
    restart: () => {},
    truth: (resource) => beside(path, (client) => trueGrants(client, resource)),
    // The backend runs inside this process.
    serverTimeUs: () => process.cpuUsage().user + process.cpuUsage().system,
    // A waiter is present as long as its peer has recent heartbeats.
    silence: (resource, ms) =>
      beside(path, (client) => {
        const silenced = "SELECT peer FROM waiters WHERE resource = ?1";
        client
          .prepare(`UPDATE peers SET beat_at = beat_at - ?2 WHERE id IN (${silenced})`)
          .run(resource, ms);
      }),
    relayed: () => relayedCalls(sqliteEngine({ path })),
    misanswered: () => misanswered(path),
  };
}

/** The live grants, read from the rows alone. */
export function trueGrants(client: SqlClient, resource: string) {
  const rows = client
    .prepare("SELECT token, expires_at FROM grants WHERE resource = ?1")
    .all(resource) as { token: number; expires_at: number }[];
  const now = hostInstant();
  return rows
    .map(({ token, expires_at }) => ({
      token: BigInt(token),
      remainingMs: Math.ceil(expires_at - now),
    }))
    .filter(({ remainingMs }) => remainingMs > 0);
}

/** Uses the engine's own binding: a second SQLite in one process would drop its locks. */
async function beside<T>(path: string, work: (client: SqlClient) => T): Promise<T> {
  const client = await openDatabase(resolveSqlite({ path }), "quick");
  try {
    client.exec("PRAGMA busy_timeout = 2000");
    return work(client);
  } finally {
    client.close();
  }
}

type Garble = (answer: unknown) => unknown;

/** Values that a binding could return and that are not an answer to the statement. */
const SHAPES: Record<string, Garble> = {
  null: () => null,
  "a string": () => "granted",
  "a row with missing columns": (answer) => (Array.isArray(answer) ? [{}] : {}),
  "a row of text": (answer) => {
    if (Array.isArray(answer)) return [asText(answer[0])];
    return asText(answer);
  },
  "a list for a row": (answer) => (Array.isArray(answer) ? [[1, 2]] : [1, 2]),
};

function asText(row: unknown): unknown {
  const cells = Object.entries((row ?? {}) as object);
  return Object.fromEntries(cells.map(([name, value]) => [name, String(value)]));
}

function misanswered(path: string): Misanswered {
  let garble: Garble = (answer) => answer;
  const open: typeof openDatabase = async (...args) => {
    const client = await openDatabase(...args);
    return {
      exec: (text) => client.exec(text),
      close: () => client.close(),
      prepare: (text): PreparedStatement => {
        const statement = client.prepare(text);
        return {
          get: (...params) => garble(statement.get(...params)),
          all: (...params) => garble(statement.all(...params)) as unknown[],
          run: (...params) => garble(statement.run(...params)) as { changes: number },
        };
      },
    };
  };
  return {
    engine: new SqliteEngine(resolveSqlite({ path }), systemClock, open),
    shapes: Object.keys(SHAPES),
    answerWith(shape) {
      garble = shape === null ? (answer) => answer : SHAPES[shape]!;
    },
  };
}
