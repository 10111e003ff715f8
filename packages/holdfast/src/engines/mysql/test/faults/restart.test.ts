import { surviveKills } from "../../../../test-support/sql/kill-under-load.fixture.js";
import { claimInTransaction, fenceInTransaction } from "../../index.js";
import { describeWithMysql } from "../support/test-server.fixture.js";

describeWithMysql({ durable: true }, (it) => {
  it("kill -9 under load: no stale write is accepted, tokens rise, waiters go on", (server) => {
    const pool = server.pool({ connectionLimit: 6 });
    return surviveKills({
      locks: () => server.locks(),
      restart: () => server.instance.restart(),
      async session() {
        const connection = await pool.getConnection();
        return {
          query: (text) => connection.query(text),
          fence: (sequencer) => fenceInTransaction(connection, sequencer),
          claim: (resource) => claimInTransaction(connection, resource),
          end: () => connection.destroy(),
        };
      },
    });
  });
});
