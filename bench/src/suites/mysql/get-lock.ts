import mysql, { type RowDataPacket } from "mysql2/promise";
import type { Contender, Subject } from "../../measuring/suite.js";
import { GaveUp } from "../gave-up.js";
import { RESOURCE, WAIT_MS } from "../terms.js";

/** Waits inside the statement. Each waiter and each holder occupies a session of the pool. */
export const getLock: Contender = {
  id: "get-lock",
  name: "GET_LOCK by hand",
  ours: false,
  reach: "host",
  sitsOut: { rows: "keeps no rows" },
  async open({ url }): Promise<Subject> {
    // The default pool has ten sessions. The eleventh waiter of a process waits for one of them.
    const pool = mysql.createPool(url);
    return {
      async acquire(resource = RESOURCE) {
        const session = await pool.getConnection();
        const [[row]] = await session.query<RowDataPacket[]>("SELECT GET_LOCK(?, ?) AS got", [
          ...[resource, WAIT_MS / 1e3],
        ]);
        if (row!.got !== 1) {
          session.release();
          throw new GaveUp();
        }
        return async () => {
          await session.query("SELECT RELEASE_LOCK(?)", [resource]);
          session.release();
        };
      },
    };
  },
};
