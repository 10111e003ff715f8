import { surviveKills } from "../../../../test-support/sql/kill-under-load.fixture.js";
import { claimInTransaction, fenceInTransaction } from "../../index.js";
import { scenes } from "../support/test-server.fixture.js";

scenes({ durable: true }, (play) => {
  play("kill -9 under load: no stale write is accepted, tokens rise, waiters go on", (ground) => {
    const pool = ground.pool({ max: 6 });
    // Also of a session that is being given back; its statements tell us anyway.
    pool.on("connect", (client) => client.on("error", () => {}));
    pool.on("error", () => {});
    return surviveKills({
      locks: () => ground.locks(),
      restart: () => ground.server.restart(),
      async session() {
        const client = await pool.connect();
        return {
          query: (text) => client.query(text),
          fence: (sequencer) => fenceInTransaction(client, sequencer),
          claim: (resource) => claimInTransaction(client, resource),
          end: () => client.release(true),
        };
      },
    });
  });
});
