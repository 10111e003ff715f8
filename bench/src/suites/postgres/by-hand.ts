import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import type { Contender, Subject } from "../../measuring/suite.js";
import { RESOURCE } from "../terms.js";

/** Why contenders without rows sit out. */
export const NO_ROWS = "keeps no rows";
const PAUSE_MS = 10;
const KEY = "hashtextextended($1, 0)";

/** Waits inside the statement. Each waiter and each holder occupies a session of the pool. */
export const blocking = byHand(
  "blocking",
  "pg_advisory_lock by hand",
  async (session, resource) => {
    await session.query(`SELECT pg_advisory_lock(${KEY})`, [resource]);
  },
);

/** Polls, for users who do not want long statements. */
export const polling = byHand(
  "polling",
  `pg_try_advisory_lock by hand, every ${PAUSE_MS} ms`,
  async (session, resource) => {
    const text = `SELECT pg_try_advisory_lock(${KEY}) AS got`;
    while (!(await session.query<{ got: boolean }>(text, [resource])).rows[0]!.got) {
      await sleep(PAUSE_MS);
    }
  },
);

function byHand(
  id: string,
  name: string,
  lock: (session: pg.PoolClient, resource: string) => Promise<void>,
): Contender {
  return {
    id,
    name,
    ours: false,
    reach: "host",
    sitsOut: { rows: NO_ROWS },
    async open({ url }): Promise<Subject> {
      // The default pool has ten sessions. The eleventh waiter of a process waits for one of them.
      const pool = new pg.Pool({ connectionString: url });
      return {
        async acquire(resource = RESOURCE) {
          const session = await pool.connect();
          await lock(session, resource);
          return async () => {
            await session.query(`SELECT pg_advisory_unlock(${KEY})`, [resource]);
            session.release();
          };
        },
      };
    },
  };
}
