import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { UsageError } from "../../errors.js";
import { type Play, playClaims, playFences } from "../../test-support/sql/transactions.fixture.js";
import { claimInTransaction, fenceInTransaction, init } from "./index.js";
import { type Ground, scenes } from "./test/support/test-server.fixture.js";

function onGround(ground: Ground) {
  return {
    locks: () => ground.locks(),
    async session() {
      const client = await ground.client();
      return {
        query: (text: string) => client.query(text),
        fence: (sequencer: string) => fenceInTransaction(client, sequencer),
        claim: (resource: string, options = {}) => claimInTransaction(client, resource, options),
      };
    },
    async count(table: string, where = "true") {
      const text = `SELECT count(*)::int AS n FROM holdfast.${table} WHERE ${where}`;
      return (await ground.admin.query(text)).rows[0].n as number;
    },
    untilWaiters: (resource: string, count: number) => ground.untilWaiters(resource, count),
    claimFromPool: (resource: string) => claimInTransaction(ground.pool(), resource),
  };
}

scenes({}, (play) => {
  const common: Play = (title, part) => play(title, (ground) => part(onGround(ground)));
  playFences(common);
  playClaims(common);

  for (const level of ["REPEATABLE READ", "SERIALIZABLE"]) {
    play(`a fence is refused under ${level}, where a snapshot shows what was`, async (ground) => {
      const [locks, client] = [ground.locks(), await ground.client()];
      const begin = async () => {
        await client.query(`BEGIN ISOLATION LEVEL ${level}`);
        await client.query("SELECT count(*) FROM holdfast.grants");
      };
      const isRefused = (error: unknown) =>
        error instanceof UsageError && /READ COMMITTED/.test(error.message);
      // In the snapshot its ttl is over soon, and it is renewed all the time.
      const renewed = await locks.acquire(`c-${level}`, { ttlMs: 600 });
      await begin();
      await sleep(1_000);
      await assert.rejects(fenceInTransaction(client, renewed.sequencer), isRefused);
      await client.query("ROLLBACK");
      // In the snapshot it is good.
      const revoked = await locks.acquire(`i-${level}`, { ttlMs: 60_000, renew: false });
      await begin();
      await locks.revoke(revoked.resource, { token: revoked.token });
      await assert.rejects(fenceInTransaction(client, revoked.sequencer), isRefused);
      await client.query("ROLLBACK");
    });
  }

  play("claims and fences are refused in the schema of ShedLock", async (ground) => {
    await init(ground.admin, { shedlock: "shedlock" });
    await ground.admin.query(`INSERT INTO shedlock
      VALUES ('job', timezone('utc', now()) + interval '1 minute', timezone('utc', now()), 'java')`);
    const lease = await ground.locks({ hold: "shedlock" }).acquire("f", { ttlMs: 60_000 });
    const client = await ground.client();
    const options = { schema: "holdfast_shedlock" };
    for (const ask of [
      () => claimInTransaction(client, "job", options),
      () => fenceInTransaction(client, lease.sequencer, options),
    ]) {
      await client.query("BEGIN");
      await assert.rejects(ask(), (error: unknown) => {
        return error instanceof UsageError && /ShedLock/.test(error.message);
      });
      await client.query("ROLLBACK");
    }
  });

  play("a claim in a transaction leaves no row behind", async (ground) => {
    const client = await ground.client();
    await client.query("BEGIN");
    assert.notEqual(await claimInTransaction(client, "h"), null);
    await client.query("COMMIT");
    const text = "SELECT count(*)::int AS n FROM holdfast.resources WHERE name = 'h'";
    assert.equal((await ground.admin.query(text)).rows[0].n, 0);
  });
});
