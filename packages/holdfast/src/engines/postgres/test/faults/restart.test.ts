import { surviveKills } from "../../../../test-support/sql/kill-under-load.fixture.js";
import { claimInTransaction, fenceInTransaction } from "../../index.js";
import { describeWithPostgres } from "../support/test-server.fixture.js";

describeWithPostgres({ durable: true }, (it) => {
  it("kill -9 under load: no stale write is accepted, tokens rise, waiters go on", (server) => {
    const pool = server.pool({ max: 6 });
    // Also ignores errors of a session that is being returned to the pool; its statements fail
    // anyway.
    pool.on("connect", (client) => client.on("error", () => {}));
    pool.on("error", () => {});
    return surviveKills({
      locks: () => server.locks(),
      restart: () => server.instance.restart(),
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
