// The token check for data in PostgreSQL; the lock may be anywhere. Tokens travel as text, because
// JavaScript's numbers end at 53 bits.

// #region imports
import { UsageError } from "holdfast";
import type { ClientBase, Pool, PoolClient } from "pg";
import { demandEqual, fencedOut, type Held } from "./mark.js";
// #endregion

export const TABLE = "CREATE TABLE fence (resource text PRIMARY KEY, token bigint NOT NULL)";

// #region register
/** Before the first read, in a transaction of its own: raises the mark, or refuses. */
export async function register(client: ClientBase, lease: Held): Promise<void> {
  lease.assertHeld();
  const { rowCount } = await client.query(
    `INSERT INTO fence (resource, token) VALUES ($1, $2)
     ON CONFLICT (resource) DO UPDATE SET token = excluded.token
     WHERE fence.token <= excluded.token`,
    [lease.resource, String(lease.token)],
  );
  if (rowCount === 0) throw fencedOut(lease); // no row: the mark is greater
}
// #endregion

// #region check
/** First statement of the transaction that writes: the mark must equal the token. Never raises it. */
export async function check(client: ClientBase, lease: Held): Promise<void> {
  const { rows } = await client.query<{ token: string }>(
    "SELECT token FROM fence WHERE resource = $1 FOR UPDATE", // locked until the commit
    [lease.resource],
  );
  demandEqual(lease, rows[0] === undefined ? null : BigInt(rows[0].token));
}
// #endregion

// #region transaction
/** Returns what write returns. */
export async function transaction<T>(
  client: ClientBase,
  lease: Held,
  write: () => Promise<T>,
): Promise<T> {
  await client.query("BEGIN");
  try {
    await check(client, lease);
    const written = await write();
    const { command } = await client.query("COMMIT");
    // A statement failed and somebody caught its error: the server says ROLLBACK, and no error.
    if (command !== "COMMIT") throw new UsageError("a statement failed, so nothing was written");
    return written;
  } catch (error) {
    // Fails where the server has ended the session; it has rolled back then.
    await client.query("ROLLBACK").catch(() => {});
    throw error;
  }
}
// #endregion

// #region pool
/** Lends a client of the pool, and returns it, or throws it away if its session has ended. */
export async function withClient<T>(
  pool: Pool,
  use: (client: PoolClient) => Promise<T>,
): Promise<T> {
  const client = await pool.connect();
  let ended: Error | undefined;
  const onError = (error: Error) => {
    ended = error;
  };
  // The listener of the pool does not hear a client that is lent. Without one the process ends.
  client.on("error", onError);
  try {
    return await use(client);
  } finally {
    client.release(ended);
    client.off("error", onError);
  }
}
// #endregion
