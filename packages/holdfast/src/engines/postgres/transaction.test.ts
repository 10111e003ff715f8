import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { FencedOutError, UsageError } from "../../errors.js";
import { scenes } from "./ground.fixture.js";
import { claimInTransaction, fenceInTransaction } from "./index.js";

scenes({}, (play) => {
  play("a fence that holds lets the transaction commit, and renewals go on", async (ground) => {
    const [locks, client] = [ground.locks(), await ground.client()];
    const lease = await locks.acquire("a", { ttlMs: 600 });
    await client.query("BEGIN");
    await fenceInTransaction(client, lease.sequencer);
    await sleep(900);
    assert.equal(lease.held, true, "the keeper was kept from renewing");
    await client.query("COMMIT");
    assert.equal(await lease.release(), "released");
  });

  play(
    "a grant that expires under a checked transaction is not succeeded before it commits",
    async (ground) => {
      const [locks, other, client] = [ground.locks(), ground.locks(), await ground.client()];
      const lease = await locks.acquire("b", { ttlMs: 300, renew: false });
      await client.query("BEGIN");
      await fenceInTransaction(client, lease.sequencer);
      const waiting = other.acquire("b");
      await sleep(600);
      assert.equal(lease.held, false);
      assert.equal(await other.tryAcquire("b"), null, "somebody was let in beside the transaction");
      const committedAt = performance.now();
      await client.query("COMMIT");
      const next = await waiting;
      assert.ok(next.token > lease.token);
      assert.ok(performance.now() - committedAt < 3_000);
      await client.query("BEGIN");
      await assert.rejects(fenceInTransaction(client, lease.sequencer), FencedOutError);
      await client.query("ROLLBACK");
    },
  );

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

  play(
    "a claim in a transaction excludes everybody until it ends, and commits with its data",
    async (ground) => {
      const [locks, client, second] = [
        ground.locks(),
        await ground.client(),
        await ground.client(),
      ];
      await ground.admin.query("CREATE TABLE IF NOT EXISTS data (token bigint)");
      const before = await locks.acquire("d");
      await client.query("BEGIN");
      assert.equal(await claimInTransaction(client, "d"), null, "somebody holds it");
      await before.release();
      const claim = await claimInTransaction(client, "d");
      assert.ok(claim !== null && claim.token > before.token);
      await client.query("INSERT INTO data VALUES ($1)", [String(claim.token)]);
      assert.equal(await locks.tryAcquire("d"), null);
      await second.query("BEGIN");
      assert.equal(await claimInTransaction(second, "d", { waitMs: 50 }), null);
      await second.query("ROLLBACK");
      const waiting = locks.acquire("d");
      await sleep(100);
      await client.query("COMMIT");
      const lease = await waiting;
      assert.ok(lease.token > claim.token);
      await lease.release();
      const { rows } = await ground.admin.query(
        "SELECT count(*)::int AS n FROM holdfast.resources WHERE name = 'd'",
      );
      assert.equal(rows[0].n, 0, "nothing is left of it");
    },
  );

  play("a claim does not overtake a waiter", async (ground) => {
    const [locks, other, client] = [ground.locks(), ground.locks(), await ground.client()];
    const held = await locks.acquire("e", { mode: "shared" });
    const waiting = other.acquire("e", { waitMs: 20_000 });
    await ground.untilWaiters("e", 1);
    await client.query("BEGIN");
    assert.equal(await claimInTransaction(client, "e"), null);
    await client.query("ROLLBACK");
    await held.release();
    await (await waiting).release();
  });

  play("without a transaction both are refused", async (ground) => {
    const client = await ground.client();
    await assert.rejects(fenceInTransaction(client, "exclusive:1:f"), UsageError);
    await assert.rejects(claimInTransaction(client, "f"), UsageError);
    const pool = ground.pool();
    await assert.rejects(claimInTransaction(pool, "f"), UsageError);
  });
});
