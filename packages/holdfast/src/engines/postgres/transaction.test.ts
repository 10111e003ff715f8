import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { type Play, playClaims, playFences } from "../../sql/transactions.fixture.js";
import { type Ground, scenes } from "./ground.fixture.js";
import { claimInTransaction, fenceInTransaction } from "./index.js";

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
    play(
      `a fence refuses the old holder under ${level}, whatever its snapshot shows`,
      async (ground) => {
        const [locks, other, client] = [ground.locks(), ground.locks(), await ground.client()];
        const name = `c-${level}`;
        const lease = await locks.acquire(name, { ttlMs: 300, renew: false });
        await client.query(`BEGIN ISOLATION LEVEL ${level}`);
        await client.query("SELECT count(*) FROM holdfast.grants");
        await sleep(400);
        const next = await other.acquire(name);
        await assert.rejects(fenceInTransaction(client, lease.sequencer));
        await client.query("ROLLBACK");
        assert.equal(next.held, true);
      },
    );
  }

  play("a claim in a transaction leaves no row behind", async (ground) => {
    const client = await ground.client();
    await client.query("BEGIN");
    assert.notEqual(await claimInTransaction(client, "h"), null);
    await client.query("COMMIT");
    const text = "SELECT count(*)::int AS n FROM holdfast.resources WHERE name = 'h'";
    assert.equal((await ground.admin.query(text)).rows[0].n, 0);
  });
});
