// hold: "advisory". advisory.long.test.ts runs all laws with it.
import assert from "node:assert/strict";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { startPgbouncer } from "@holdfast/servers";
import { UnsupportedError, UsageError } from "../../../../errors.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { postgresEngine } from "../../index.js";
import { describeWithPostgres } from "../support/test-server.fixture.js";

const PLAIN = { hold: "advisory", prefix: "" } as const;
const HOLDERS = "SELECT count(DISTINCT pid)::int AS n FROM pg_locks WHERE locktype = 'advisory'";

describeWithPostgres({}, (it) => {
  it("programs that call pg_advisory_lock exclude us, and we exclude them", async (server) => {
    const locks = server.locks(PLAIN);
    const plain = await server.client();
    const take = async (key: string) =>
      (await plain.query(`SELECT pg_try_advisory_lock(${key}) AS got`)).rows[0].got as boolean;
    for (const [name, key] of [
      ["4711", "4711"],
      ["-5", "-5"],
      ["nightly:job", "hashtextextended('nightly:job', 0)"],
    ] as const) {
      const lease = await locks.acquire(name);
      assert.equal(await take(key), false, `${name} is ours`);
      await lease.release();
      assert.equal(await take(key), true);
      assert.equal(await locks.tryAcquire(name), null, `${name} is theirs`);
      const [holder] = (await locks.inspect(name)).holders;
      assert.equal(holder?.label, "(another program)");
      const waiting = locks.acquire(name, { waitMs: 30_000 });
      await sleep(50);
      await plain.query(`SELECT pg_advisory_unlock(${key})`);
      await (await waiting).release();
    }
  });

  it("readers share with pg_advisory_lock_shared, writers wait for both", async (server) => {
    const locks = server.locks(PLAIN);
    const plain = await server.client();
    await plain.query("SELECT pg_advisory_lock_shared(77)");
    const reader = await locks.acquire("77", { mode: "shared" });
    const second = await locks.acquire("77", { mode: "shared" });
    assert.equal(await locks.tryAcquire("77"), null);
    await plain.query("SELECT pg_advisory_unlock_shared(77)");
    assert.equal(await locks.tryAcquire("77"), null, "our own readers are in the way, too");
    await reader.release();
    assert.equal(await locks.tryAcquire("77"), null, "one of them still is");
    await second.release();
    assert.notEqual(await locks.tryAcquire("77"), null);
  });

  it("a lease is lost as soon as its session is terminated", async (server) => {
    const locks = server.locks({ hold: "advisory" });
    const lease = await locks.acquire("a", { ttlMs: 60_000 });
    const lost = once(lease.signal, "abort");
    const text = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'";
    await server.admin.query(text);
    await Promise.race([lost, sleep(12_000, null, { ref: false })]);
    assert.equal(lease.held, false, "the next renewal would have been in twenty seconds");
    await (await locks.acquire("a")).release();
  });

  it("a lock that a failed statement took is released", async (server) => {
    // First, what PostgreSQL does: the lock survives the rollback of its own statement.
    const plain = await server.client();
    await assert.rejects(plain.query("SELECT pg_advisory_lock(1), 1 / (SELECT 0)"));
    const { rows } = await server.admin.query("SELECT pg_try_advisory_lock(1) AS got");
    assert.equal(rows[0].got, false, "PostgreSQL kept the lock of a failed statement");
    await server.admin.query(`
      CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN IF NEW.resource = ''trap'' THEN RAISE EXCEPTION ''too late''; END IF; RETURN NEW; END';
      CREATE TRIGGER spoil BEFORE INSERT ON holdfast.advisory FOR EACH ROW EXECUTE FUNCTION spoil()`);
    const locks = server.locks(PLAIN);
    await assert.rejects(locks.tryAcquire("trap"), /too late/);
    await server.admin.query("DROP TRIGGER spoil ON holdfast.advisory");
    const other = server.locks(PLAIN);
    await until("the lock is free", async () => (await other.tryAcquire("trap")) !== null);
  });

  it("a claim that times out while it is being granted leaves no lock", async (server) => {
    const locks = server.locks(PLAIN);
    await (await locks.acquire("b")).release();
    await server.admin.query(`
      CREATE OR REPLACE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM pg_sleep(0.5); RETURN NEW; END';
      CREATE TRIGGER dawdle BEFORE INSERT ON holdfast.advisory FOR EACH ROW EXECUTE FUNCTION dawdle()`);
    await assert.rejects(locks.acquire("b", { waitMs: 0, callTimeoutMs: 100 }));
    await server.admin.query("DROP TRIGGER dawdle ON holdfast.advisory");
    const other = server.locks(PLAIN);
    await until("the lock is free", async () => (await other.tryAcquire("b")) !== null);
  });

  it("a pooler with a single session is detected and refused", async (server) => {
    await using pooler = await startPgbouncer({ target: server.instance.port, poolSize: 1 });
    const engine = server.engine({ hold: "advisory", port: pooler.port });
    await assert.rejects(engine.tryAcquire(claim("c1"), now()), UnsupportedError);
  });

  it("a transaction pooler in between is detected and refused", async (server) => {
    await using pooler = await startPgbouncer({ target: server.instance.port });
    for (let i = 0; i < 3; i++) {
      const engine = server.engine({ hold: "advisory", port: pooler.port });
      await assert.rejects(engine.tryAcquire(claim("c"), now()), UnsupportedError);
    }
    const { rows } = await server.admin.query(HOLDERS);
    assert.equal(rows[0].n, 0, "nothing was locked through it");
    await using session = await startPgbouncer({ target: server.instance.port, mode: "session" });
    const locks = server.locks({ hold: "advisory", port: session.port, listen: false });
    await (await locks.acquire("c")).release();
  });

  it("a grant that is not renewed ends at its ttl, although the session lives on", async (server) => {
    const [ours, other] = [server.locks({ hold: "advisory" }), server.locks({ hold: "advisory" })];
    const kept = await ours.acquire("d1", { ttlMs: 60_000 });
    await ours.acquire("d2", { ttlMs: 3_000, renew: false });
    assert.equal(await other.tryAcquire("d2"), null);
    await until("it is free", async () => (await other.tryAcquire("d2")) !== null);
    assert.equal(kept.held, true);
  });

  it("one session holds many locks", async (server) => {
    const locks = server.locks({ hold: "advisory", listen: false });
    const names = Array.from({ length: 200 }, (_, i) => `e${i}`);
    const leases = await Promise.all(names.map((name) => locks.acquire(name)));
    const text =
      "SELECT count(DISTINCT pid)::int AS n FROM holdfast.advisory WHERE resource LIKE 'e%'";
    assert.equal((await server.admin.query(text)).rows[0].n, 1);
    await Promise.all(leases.map((lease) => lease.release()));
    assert.equal((await server.admin.query(text)).rows[0].n, 0);
  });

  it("the server ends a silent session within its longest ttl", async (server) => {
    const relay = await server.relay();
    const [ours, other] = [
      server.locks({ hold: "advisory", port: relay.port }),
      server.locks({ hold: "advisory" }),
    ];
    const lease = await ours.acquire("f", { ttlMs: 3_000 });
    relay.hang();
    const tookMs = await until("it is free", async () => (await other.tryAcquire("f")) !== null);
    assert.equal(lease.held, false, "held beside its successor");
    assert.ok(tookMs > 300, "not before it was silent for long enough");
    relay.cut();
  });

  it("a short grant beside a long one does not shorten the session that holds both", async (server) => {
    const relay = await server.relay();
    const options = { hold: "advisory", port: relay.port, listen: false } as const;
    const [ours, other] = [server.engine(options), server.engine({ hold: "advisory" })];
    await ours.tryAcquire(claim("g0", { ttlMs: 300 }), now());
    // The second is sent before the first is answered, and carried out after it.
    const long = ours.tryAcquire(claim("g1", { ttlMs: 60_000 }), now());
    await new Promise((next) => setImmediate(next));
    const short = ours.tryAcquire(claim("g2", { ttlMs: 400 }), now());
    assert.deepEqual([(await long).kind, (await short).kind], ["granted", "granted"]);
    relay.hang();
    await sleep(1_200);
    const next = await other.tryAcquire(claim("g1"), now());
    assert.equal(next.kind, "busy", "its holder believes in it for a minute");
    relay.cut();
  });

  it("a single client, or a prefix for rows, is refused at once", async (server) => {
    const client = await server.client();
    assert.throws(() => postgresEngine({ client, hold: "advisory" }), UsageError);
    assert.throws(() => postgresEngine({ client, prefix: "" }), UsageError);
    assert.throws(() => postgresEngine({ client, hold: "other" as never }), UsageError);
  });
});
