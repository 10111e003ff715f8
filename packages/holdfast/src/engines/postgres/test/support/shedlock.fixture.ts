import { hostname } from "node:os";
import type { ShedLockServer } from "../../../../test-support/sql/shedlock.fixture.js";
import type { PostgresTestServer } from "./test-server.fixture.js";

export const HOLD = { hold: "shedlock" } as const;

// What ShedLock sends with database time; name and times stand for its parameters.
const NOW = "timezone('utc', CURRENT_TIMESTAMP)";

/** ShedLock's sessions and ours are in different time zones. */
export function shedLockServer(server: PostgresTestServer): ShedLockServer {
  const theirs = server.pool({ options: "-c timezone=America/St_Johns" });
  const pool = { options: "-c timezone=Pacific/Kiritimati" };
  return {
    theirs: {
      async lock(name, ms) {
        const ends = `${NOW} + interval '${ms} milliseconds'`;
        const text = `INSERT INTO shedlock (name, lock_until, locked_at, locked_by)
          VALUES ($1, ${ends}, ${NOW}, $2) ON CONFLICT (name) DO UPDATE
          SET lock_until = ${ends}, locked_at = ${NOW}, locked_by = $2
          WHERE shedlock.name = $1 AND shedlock.lock_until <= ${NOW}`;
        return (await theirs.query(text, [name, hostname()])).rowCount === 1;
      },
      async unlock(name) {
        const text = `UPDATE shedlock SET lock_until = ${NOW} WHERE name = $1 AND locked_by = $2`;
        await theirs.query(text, [name, hostname()]);
      },
    },
    locks: () => server.locks({ ...HOLD, pool }),
    engine: () => server.engine({ ...HOLD, pool }),
    row: async (name) => {
      const text = "SELECT row_to_json(s)::text AS row FROM shedlock s WHERE name = $1";
      return (await server.admin.query<{ row: string }>(text, [name])).rows[0]!.row;
    },
    sweep: () => server.admin.query("SELECT holdfast_shedlock.sweep(0)"),
    deleteRow: (name) => server.admin.query("DELETE FROM shedlock WHERE name = $1", [name]),
  };
}
