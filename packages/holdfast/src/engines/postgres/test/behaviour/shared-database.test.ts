// What users and their tools do in the same database: dumps, and session resets.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { init as initUrl } from "../../../../init.js";
import { Locks } from "../../../../locks.js";
import { init, postgresEngine } from "../../index.js";
import { describeWithPostgres } from "../support/test-server.fixture.js";

// The lock that a dump takes on every table while it runs.
const DUMP = "BEGIN READ ONLY; LOCK TABLE holdfast.resources, holdfast.grants IN ACCESS SHARE MODE";

describeWithPostgres({}, (it) => {
  it("init of a schema that is up to date waits for no dump", async (server) => {
    const [locks, dump] = [server.locks(), await server.client()];
    await dump.query(DUMP);
    await init(server.admin);
    const lease = await locks.tryAcquire("free");
    assert.notEqual(lease, null, "a free name is busy while a dump runs");
    await dump.query("ROLLBACK");
  });

  it("an update that waits for a dump blocks nobody, and is made when the dump ends", async (server) => {
    const [locks, dump] = [server.locks(), await server.client()];
    await locks.acquire("held", { ttlMs: 60_000 });
    await dump.query(DUMP);
    const older = "CREATE OR REPLACE FUNCTION holdfast.version() RETURNS integer";
    await server.admin.query(`${older} LANGUAGE sql IMMUTABLE AS 'SELECT 1'`);
    let done = false;
    const updated = init(server.pool()).then(() => {
      done = true;
    });
    updated.catch(() => {});
    for (let i = 0; i < 20; i++) {
      const lease = await locks.tryAcquire(`free-${i}`);
      assert.notEqual(lease, null, "a free name is busy while an update waits for a dump");
      await sleep(50);
    }
    assert.equal(done, false, "the update did not wait for the dump");
    await dump.query("ROLLBACK");
    await updated;
    const view = await server.locks().inspect("held");
    assert.equal(view.holders.length, 1, "what was held is still held");
  });

  it("of several programs that run init at once, one makes the tables and says so", async (server) => {
    await server.admin.query("CREATE DATABASE raced");
    const url = `postgres://postgres@127.0.0.1:${server.instance.port}/raced`;
    for (const schema of ["first", "second"]) {
      const at = `${url}?schema=${schema}`;
      const outcomes = await Promise.all(Array.from({ length: 5 }, () => initUrl(at)));
      assert.deepEqual(outcomes.toSorted(), [...Array(4).fill("nothing to do"), "prepared"]);
    }
    await server.admin.query("DROP DATABASE raced");
  });

  it("init with another table of ShedLock's is carried out", async (server) => {
    const schema = "two_tables";
    await init(server.admin, { schema, shedlock: "public.first" });
    await init(server.admin, { schema, shedlock: "public.second" });
    const { rows } = await server.admin.query("SELECT to_regclass('public.second') AS made");
    assert.notEqual(rows[0].made, null);
  });

  for (const words of ["DISCARD ALL", "DEALLOCATE ALL"]) {
    it(`after ${words} on sessions of the pool locks go on`, async (server) => {
      const pool = server.pool({ max: 2 });
      await using locks = new Locks(postgresEngine({ client: pool }));
      const kept = await locks.acquire("kept", { ttlMs: 6_000 });
      for (let i = 0; i < 8; i++) await (await locks.acquire(`warm-${i}`)).release();
      // All sessions of the pool.
      const sessions = [await pool.connect(), await pool.connect()];
      for (const session of sessions) await session.query(words);
      for (const session of sessions) session.release();
      for (let i = 0; i < 8; i++) await (await locks.acquire(`tidy-${i}`)).release();
      await sleep(7_000);
      assert.equal(kept.held, true, "a lease was lost with the prepared statements");
      assert.equal(await kept.release(), "released");
    });
  }

  it("a waiter is served although its sessions are reset all the time", async (server) => {
    const pool = server.pool({ max: 1 });
    await using ours = new Locks(postgresEngine({ client: pool }));
    const other = server.locks();
    await (await ours.acquire("w")).release();
    const held = await other.acquire("w");
    const waiting = ours.acquire("w");
    await server.untilWaiters("w", 1);
    let served = false;
    const tidying = (async () => {
      while (!served) await Promise.all([pool.query("DISCARD ALL"), sleep(20)]);
    })();
    try {
      await sleep(500);
      await held.release();
      const lease = await waiting;
      await lease.renew();
      assert.equal(await lease.release(), "released");
    } finally {
      served = true;
      await tidying;
    }
  });
});
