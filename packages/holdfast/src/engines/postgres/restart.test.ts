// The database is killed under load and comes back: what it acknowledged is still so.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { FencedOutError } from "../../errors.js";
import { scenes } from "./ground.fixture.js";
import { fenceInTransaction } from "./index.js";

scenes({ durable: true }, (play) => {
  play(
    "kill -9 under load: no stale write is accepted, tokens rise, waiters go on",
    async (ground) => {
      await ground.admin.query("CREATE TABLE register (n int, token bigint)");
      await ground.admin.query("INSERT INTO register VALUES (0, 0)");
      const retry = { [Symbol.iterator]: forever };
      const options = { retry, waitMs: 60_000, ttlMs: 5_000, callTimeoutMs: 2_000 };
      const until = performance.now() + 6_000;
      let writes = 0;
      const worker = async () => {
        const locks = ground.locks();
        const pool = ground.pool({ max: 2 });
        while (performance.now() < until) {
          const lease = await locks.acquire("a", { ...options, fair: "strict" });
          const client = await pool.connect().catch(() => null);
          client?.on("error", () => {});
          try {
            if (client === null) continue;
            await client.query("BEGIN");
            await fenceInTransaction(client, lease.sequencer);
            const { rows } = await client.query("SELECT n, token FROM register");
            assert.ok(BigInt(rows[0].token) <= lease.token, "a token went back");
            await sleep(1);
            const values = [rows[0].n + 1, String(lease.token)];
            await client.query("UPDATE register SET n = $1, token = $2", values);
            await client.query("COMMIT");
            writes++;
          } catch (error) {
            // Killed with the server, or fenced out: then nothing of it was committed.
            assert.ok(error instanceof FencedOutError || !(error instanceof assert.AssertionError));
            await client?.query("ROLLBACK").catch(() => {});
          } finally {
            client?.release(true);
            await lease.release().catch(() => {});
          }
        }
      };
      const work = Promise.all([worker(), worker(), worker()]);
      work.catch(() => {});
      await sleep(1_500);
      await ground.server.restart();
      await sleep(1_500);
      await ground.server.restart();
      const back = performance.now();
      const before = writes;
      while (writes === before && performance.now() - back < 10_000) await sleep(20);
      assert.ok(writes > before, "nobody went on within ten seconds");
      await work;
      const { rows } = await ground.admin.query("SELECT n FROM register");
      // A commit whose answer was lost counts in the register, and not here.
      assert.ok(rows[0].n >= writes && rows[0].n <= writes + 6, `${rows[0].n} of ${writes} writes`);
    },
  );
});

function* forever(): Generator<number> {
  for (;;) yield 50;
}
