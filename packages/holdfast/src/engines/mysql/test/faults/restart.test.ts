import { surviveKills } from "../../../../test-support/sql/kill-under-load.fixture.js";
import { claimInTransaction, fenceInTransaction } from "../../index.js";
import { scenes } from "../support/test-server.fixture.js";

scenes({ durable: true }, (play) => {
  play("kill -9 under load: no stale write is accepted, tokens rise, waiters go on", (ground) => {
    const pool = ground.pool({ connectionLimit: 6 });
    return surviveKills({
      locks: () => ground.locks(),
      restart: () => ground.server.restart(),
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
