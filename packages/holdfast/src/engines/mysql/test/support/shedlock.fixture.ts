import { hostname } from "node:os";
import type { ResultSetHeader, RowDataPacket } from "mysql2";
import type mysql from "mysql2/promise";
import type { ShedLock, ShedLockServer } from "../../../../test-support/sql/shedlock.fixture.js";
import type { MysqlTestServer } from "./test-server.fixture.js";

export const HOLD = { hold: "shedlock" } as const;

/** ShedLock's sessions and ours are in different time zones. */
export function shedLockServer(server: MysqlTestServer): ShedLockServer {
  const theirs = shedLock(inZone(server.pool(), "-03:30"), "shedlock");
  const ours = () => inZone(server.pool(), "+12:45");
  return {
    theirs,
    locks: () => server.locks({ ...HOLD, client: ours() }),
    engine: () => server.engine({ ...HOLD, client: ours() }),
    row: async (name) => {
      const text = "SELECT CONCAT_WS(' | ', lock_until, locked_at, locked_by) AS r FROM shedlock";
      const [rows] = await server.admin.query<RowDataPacket[]>(`${text} WHERE name = ?`, [name]);
      return rows[0]!.r as string;
    },
    sweep: () =>
      server.admin.query("CALL holdfast_shed_sweep(holdfast_shed_now_us(UTC_TIMESTAMP(6)), 0, 99)"),
    deleteRow: (name) => server.admin.query("DELETE FROM shedlock WHERE name = ?", [name]),
  };
}

/** What ShedLock sends with database time. */
export function shedLock(pool: mysql.Pool, table: string): ShedLock {
  const change = async (text: string, values: unknown[]) =>
    (await pool.query<ResultSetHeader>(text, values))[0].affectedRows > 0;
  return {
    async lock(name, ms) {
      const ends = `TIMESTAMPADD(MICROSECOND, ${ms * 1_000}, UTC_TIMESTAMP(3))`;
      const insert = `INSERT IGNORE INTO ${table} (name, lock_until, locked_at, locked_by)
        VALUES (?, ${ends}, UTC_TIMESTAMP(3), ?)`;
      if (await change(insert, [name, hostname()])) return true;
      const update = `UPDATE ${table}
        SET lock_until = ${ends}, locked_at = UTC_TIMESTAMP(3), locked_by = ?
        WHERE name = ? AND lock_until <= UTC_TIMESTAMP(3)`;
      return change(update, [hostname(), name]);
    },
    async unlock(name) {
      const text = `UPDATE ${table} SET lock_until = UTC_TIMESTAMP(3) WHERE name = ? AND locked_by = ?`;
      await change(text, [name, hostname()]);
    },
  };
}

/** Sets the time zone of the pool's sessions. */
export function inZone(pool: mysql.Pool, zone: string): mysql.Pool {
  pool.pool.on("connection", (connection) => connection.query(`SET time_zone = '${zone}'`));
  return pool;
}
