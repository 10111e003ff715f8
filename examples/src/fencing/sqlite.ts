// The token check for data in SQLite; the lock may be anywhere. Tokens travel as text, because
// JavaScript's numbers end at 53 bits.

// #region imports
import type { Sqlite } from "../open-sqlite.js";
import { demandEqual, fencedOut, type Held } from "./mark.js";
// #endregion

export const TABLE = "CREATE TABLE fence (resource TEXT PRIMARY KEY, token INTEGER NOT NULL)";

// #region register
/** Before the first read, in a transaction of its own: raises the mark, or refuses. */
export function register(database: Sqlite, lease: Held): void {
  lease.assertHeld();
  atomically(database, () => {
    const { changes } = database
      .prepare(
        `INSERT INTO fence (resource, token) VALUES (?, ?)
         ON CONFLICT (resource) DO UPDATE SET token = excluded.token
         WHERE fence.token <= excluded.token`,
      )
      .run(lease.resource, String(lease.token));
    if (Number(changes) === 0) throw fencedOut(lease); // no row changed: the mark is greater
  });
}
// #endregion

// #region check
/** First statement of the transaction that writes: the mark must equal the token. Never raises it. */
export function check(database: Sqlite, lease: Held): void {
  // An update that changes nothing: it makes this the only writer, and fails in an old snapshot.
  const { changes } = database
    .prepare("UPDATE fence SET token = token WHERE resource = ? AND token = ?")
    .run(lease.resource, String(lease.token));
  if (Number(changes) === 1) return;
  const row = database
    .prepare("SELECT CAST(token AS TEXT) AS token FROM fence WHERE resource = ?")
    .get(lease.resource) as { token: string } | undefined;
  demandEqual(lease, row === undefined ? null : BigInt(row.token));
}
// #endregion

// #region transaction
/** Returns what write returns. */
export function transaction<T>(database: Sqlite, lease: Held, write: () => T): T {
  return atomically(database, () => {
    check(database, lease);
    return write();
  });
}

// Never left to autocommit: after a statement that failed, libsql 0.5 answers and does not commit.
function atomically<T>(database: Sqlite, work: () => T): T {
  database.exec("BEGIN IMMEDIATE"); // the only writer, from here on
  try {
    const done = work();
    database.exec("COMMIT");
    return done;
  } catch (error) {
    database.exec("ROLLBACK");
    throw error;
  }
}
// #endregion
