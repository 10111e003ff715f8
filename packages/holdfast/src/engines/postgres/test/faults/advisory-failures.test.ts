// hold: "advisory" when a statement on the session that holds the locks fails. PostgreSQL rolls
// back rows, but not locks.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { Engine } from "../../../../engine.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { postgresEngine } from "../../index.js";
import { describeWithPostgres, type PostgresTestServer } from "../support/test-server.fixture.js";

const PLAIN = { hold: "advisory", prefix: "", listen: false } as const;

describeWithPostgres({}, (it) => {
  it("a release that is rolled back does not let anybody in without a lock", async (server) => {
    const [ours, other] = [server.engine(PLAIN), server.engine(PLAIN)];
    const [first, second] = [claim("a", { mode: "shared" }), claim("a", { mode: "shared" })];
    await granted(ours, first);
    await trap(server, "a-trap", 0.6);
    // In one tick, so that they share a statement: the trap undoes the release, and its answer
    // arrives late.
    const [released] = await Promise.all([
      ours.release([{ ...first, tombstoneMs: 0 }], now(200)),
      assert.rejects(ours.tryAcquire(claim("a-trap"), now(200))),
    ]);
    assert.equal(released[0]?.kind, "failed");
    // Sent while the first statement is still in flight.
    await granted(ours, second, 20_000);
    assert.equal((await other.tryAcquire(claim("a"), now())).kind, "busy", "two hold it");
    // The release is repeated, as core does it: it must not release the lock of the second.
    await ours.release([{ ...first, tombstoneMs: 0 }], now(20_000));
    assert.equal((await other.tryAcquire(claim("a"), now())).kind, "busy", "two hold it");
    await ours.release([{ ...second, tombstoneMs: 0 }], now());
    await granted(other, claim("a"));
  });

  it("an acquire whose error arrives late leaves no lock", async (server) => {
    const [ours, other] = [server.engine(PLAIN), server.engine(PLAIN)];
    const kept = claim("b", { ttlMs: 60_000 });
    await granted(ours, kept);
    await trap(server, "b-trap", 0.5);
    await assert.rejects(ours.tryAcquire(claim("b-trap"), now(150)));
    await sleep(500);
    await server.admin.query("DROP TRIGGER trap ON holdfast.advisory");
    const isFree = async () => (await other.tryAcquire(claim("b-trap"), now())).kind === "granted";
    await until("the lock is free", isFree);
    assert.equal((await other.tryAcquire(claim("b"), now())).kind, "busy", "its session lives on");
  });

  it("locks without a row are released, however often they were taken", async (server) => {
    const [client, other] = [await server.client(), await server.client()];
    await client.query("SELECT pg_advisory_lock(71), pg_advisory_lock(71)");
    await client.query("SELECT pg_advisory_lock_shared(72), pg_advisory_lock_shared(72)");
    await client.query("SELECT pg_advisory_lock(73)");
    await client.query("CALL holdfast.call_advisory_tidy(73, NULL)");
    const text = "SELECT pg_try_advisory_lock($1) AS got";
    const got = async (key: number) => (await other.query(text, [key])).rows[0].got;
    assert.deepEqual([await got(71), await got(72), await got(73)], [true, true, false]);
  });

  it("only rows whose lock is gone are removed", async (server) => {
    const engine = server.engine(PLAIN);
    const [exclusive, shared] = [claim("d1"), claim("d2", { mode: "shared" })];
    for (const one of [exclusive, shared]) await granted(engine, one);
    await server.admin.query(`INSERT INTO holdfast.advisory
      SELECT gen_random_uuid(), session, pid, key + 1, 'ghost', shared, token + 1024, 1, 1000, now()
        , false, '' FROM holdfast.advisory WHERE resource IN ('d1', 'd2')`);
    await trap(server, "d-trap", 0);
    await assert.rejects(engine.tryAcquire(claim("d-trap"), now()));
    const { rows } = await server.admin.query(
      "SELECT resource FROM holdfast.advisory WHERE resource IN ('d1', 'd2', 'ghost') ORDER BY 1",
    );
    assert.deepEqual(
      rows.map(({ resource }) => resource),
      ["d1", "d2"],
    );
  });

  it("an engine closes although its server never answered", async (server) => {
    const relay = await server.relay();
    relay.hang();
    const client = server.pool({ port: relay.port, connectionTimeoutMillis: 0 });
    for (const hold of ["advisory", "rows"] as const) {
      const engine = postgresEngine({ client, listen: false, hold });
      engine.tryAcquire(claim("f"), now(500)).catch(() => {});
      await sleep(100);
      const closed = engine.close().then(() => true);
      assert.equal(await Promise.race([closed, sleep(30_000, false, { ref: false })]), true, hold);
    }
    relay.cut();
  });

  it("the holding session uses READ COMMITTED, whatever its default is", async (server) => {
    const pool = { options: "-c default_transaction_isolation=serializable" };
    const engine = server.engine({ ...PLAIN, pool });
    await server.admin.query(`
      CREATE OR REPLACE FUNCTION level() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF current_setting('transaction_isolation') <> 'read committed' THEN
          RAISE EXCEPTION 'the transaction is %', current_setting('transaction_isolation');
        END IF; RETURN coalesce(NEW, OLD); END $$;
      CREATE TRIGGER level BEFORE INSERT OR UPDATE OR DELETE ON holdfast.advisory
        FOR EACH ROW EXECUTE FUNCTION level()`);
    const held = claim("e");
    await granted(engine, held);
    assert.equal((await engine.renew([{ ...held, ttlMs: 5_000 }], now()))[0]?.kind, "renewed");
    const [released] = await engine.release([{ ...held, tombstoneMs: 0 }], now());
    assert.equal(released?.kind, "released");
    await server.admin.query("DROP TRIGGER level ON holdfast.advisory");
  });
});

async function granted(engine: Engine, one: ReturnType<typeof claim>, ms = 5_000) {
  assert.equal((await engine.tryAcquire(one, now(ms))).kind, "granted");
}

/** From now on an insert of a grant with this name takes a while and fails. */
async function trap(server: PostgresTestServer, resource: string, seconds: number): Promise<void> {
  await server.admin.query(`
    CREATE OR REPLACE FUNCTION trap() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF NEW.resource = '${resource}' THEN
        PERFORM pg_sleep(${seconds}); RAISE EXCEPTION 'too late';
      END IF; RETURN NEW; END $$;
    CREATE OR REPLACE TRIGGER trap BEFORE INSERT ON holdfast.advisory
      FOR EACH ROW EXECUTE FUNCTION trap()`);
}
