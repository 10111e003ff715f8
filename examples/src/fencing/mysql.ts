// The token check for data in MySQL or MariaDB; the lock may be anywhere. Tokens travel as text,
// because JavaScript's numbers end at 53 bits.

// #region imports
import { UsageError } from "holdfast";
import type { Connection, RowDataPacket } from "mysql2/promise";
import { demandEqual, fencedOut, type Held } from "./mark.js";
// #endregion

// Names are compared byte by byte: a text column would take "a", "A" and "a " for one name.
export const TABLE =
  "CREATE TABLE fence (resource VARBINARY(1024) PRIMARY KEY, token BIGINT NOT NULL) ENGINE = InnoDB";

// #region register
/** Before the first read, in a transaction of its own: raises the mark, or refuses. */
export async function register(connection: Connection, lease: Held): Promise<void> {
  lease.assertHeld();
  await connection.query(
    `INSERT INTO fence (resource, token) VALUES (?, ?)
     ON DUPLICATE KEY UPDATE token = GREATEST(token, CAST(? AS SIGNED))`,
    [Buffer.from(lease.resource), String(lease.token), String(lease.token)],
  );
  if ((await markOf(connection, lease)) !== lease.token) throw fencedOut(lease); // it is greater
}
// #endregion

// #region check
/** First statement of the transaction that writes: the mark must equal the token. Never raises it. */
export async function check(connection: Connection, lease: Held): Promise<void> {
  demandEqual(lease, await markOf(connection, lease, "FOR UPDATE")); // locked until the commit
  // The locking read sees what is committed now, plain reads what the transaction's snapshot shows.
  if ((await markOf(connection, lease)) === lease.token) return;
  throw new UsageError("this transaction began before the registration: what it read may be old");
}

async function markOf(connection: Connection, lease: Held, lock = ""): Promise<bigint | null> {
  const [rows] = await connection.query<RowDataPacket[]>(
    `SELECT CAST(token AS CHAR) AS token FROM fence WHERE resource = ? ${lock}`,
    [Buffer.from(lease.resource)], // as bytes: connections may have different character sets
  );
  return rows[0] === undefined ? null : BigInt(rows[0].token);
}
// #endregion
