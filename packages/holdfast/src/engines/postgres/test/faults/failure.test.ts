// Terminated sessions, exhausted pools, statements that outlive their deadline, and refusals.
import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { type AddressInfo, createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { EngineError, UsageError } from "../../../../errors.js";
import { Locks } from "../../../../locks.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import {
  expectEmptyPoolReported,
  expectRefusingPoolReported,
  untilNothingIsLeft,
} from "../../../../test-support/sql/empty-pool.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { init, postgresEngine } from "../../index.js";
import { describeWithPostgres } from "../support/test-server.fixture.js";

const LISTENERS =
  "SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND pid <> pg_backend_pid()";

/** Routines that version 2 or 4 had and later versions do not have. */
const OLD_ROUTINES = [
  "holders(text, timestamptz)",
  "list(text, integer)",
  "page(text, integer)",
  "advisory_page(text, integer)",
  "run(jsonb, integer)",
  "run_one(jsonb, integer)",
  "carry_out(jsonb, timestamptz)",
  "hand_over(text, uuid, integer)",
  "sweep()",
  "advisory_run(jsonb, bigint, integer, bigint)",
  "advisory_sweep()",
  "renew(text[], uuid[], bigint[])",
  "finish(text, uuid, timestamptz)",
  "foreign_keep(uuid[])",
  "advisory_session(integer, bigint)",
  "advisory_run(jsonb, bigint, integer, bigint, bigint)",
  "advisory_renew(text[], uuid[], bigint[], bigint, integer, bigint)",
];

describeWithPostgres({}, (it) => {
  it("a terminated listening session reconnects, and the waiter gets its turn", async (server) => {
    const [ours, other] = [server.locks(), server.locks()];
    const held = await other.acquire("a");
    const waiting = ours.acquire("a", { waitMs: 60_000 });
    await server.untilWaiters("a", 1);
    const before = await server.admin.query(LISTENERS);
    assert.equal(before.rows.length, 2, "one listening session an engine");
    await server.admin.query(`SELECT pg_terminate_backend(pid) FROM (${LISTENERS}) l`);
    await until("they listen again", async () => {
      const { rows } = await server.admin.query(LISTENERS);
      return rows.length === 2 && rows.every(({ pid }) => before.rows.every((b) => b.pid !== pid));
    });
    await held.release();
    await (await waiting).release();
  });

  it("a grant whose push was lost with the session is read after the reconnect", async (server) => {
    const relay = await server.relay();
    const [ours, other] = [server.engine({ port: relay.port }), server.engine()];
    const held = claim("b");
    await other.tryAcquire(held, now());
    const pushed: string[] = [];
    ours.queue!.onGrant(({ grantId }) => pushed.push(grantId));
    const waiter = claim("b");
    assert.equal((await ours.queue!.enqueue(waiter, now())).kind, "queued");
    relay.cut();
    await other.release([{ ...held, tombstoneMs: 0 }], now());
    relay.mend();
    await until("the grant is delivered without a heartbeat", () =>
      pushed.includes(waiter.grantId),
    );
  });

  it("terminating all sessions during calls makes no second holder", async (server) => {
    const clients = [1, 2, 3].map(() => server.locks());
    let inside = 0;
    let done = 0;
    const retry = Array<number>(1_000).fill(20);
    const work = clients.flatMap((locks) =>
      Array.from({ length: 5 }, async () => {
        const lease = await locks.acquire("c", {
          waitMs: 120_000,
          retry,
          fair: "strict",
          ttlMs: 3_000,
        });
        assert.equal(++inside, 1);
        await sleep(10);
        inside--;
        await lease.release().catch(() => {});
        done++;
      }),
    );
    const all = Promise.all(work);
    all.catch(() => {});
    const text =
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'";
    while (done < 15 && inside >= 0) {
      await sleep(100);
      if (done < 12) await server.admin.query(text).catch(() => {});
      if (done === 15) break;
      await Promise.race([all, sleep(50)]);
    }
    await all;
  });

  it("an exhausted pool is reported, and what was not sent leaves nothing behind", async (server) => {
    const pool = server.pool({ max: 1 });
    await using locks = new Locks(postgresEngine({ client: pool, listen: false }));
    await expectEmptyPoolReported({ locks, borrow: () => pool.connect() }, "d");
  });

  it("a claim with a long timeout outlives the schema check of one with a short timeout", async (server) => {
    const pool = server.pool({ max: 1 });
    await using locks = new Locks(postgresEngine({ client: pool, listen: false }));
    const busy = await pool.connect();
    const impatient = locks.tryAcquire("s1", { callTimeoutMs: 200 });
    const patient = locks.tryAcquire("s2", { callTimeoutMs: 60_000 });
    await assert.rejects(impatient, { effect: "none" });
    busy.release();
    assert.ok((await patient)?.held);
  });

  it("a pool that gives up on a session by itself is reported as exhausted", async (server) => {
    const pool = server.pool({ max: 1, connectionTimeoutMillis: 100 });
    await using locks = new Locks(postgresEngine({ client: pool, listen: false }));
    await expectRefusingPoolReported({ locks, borrow: () => pool.connect() }, "e");
  });

  it("a statement that outlives its deadline leaves nothing behind", async (server) => {
    const locks = server.locks();
    await (await locks.acquire("e")).release();
    const blocker = await server.client();
    await blocker.query("BEGIN; INSERT INTO holdfast.resources VALUES ('e')");
    const options = { callTimeoutMs: 150, waitMs: 5_000 };
    await assert.rejects(locks.acquire("e", options), EngineError);
    await blocker.query("ROLLBACK");
    await untilNothingIsLeft(locks, "e");
  });

  it("one locked resource does not fail the heartbeats or renewals of others", async (server) => {
    const [ours, other] = [server.engine(), server.engine()];
    const held = [claim("f1"), claim("f2")];
    for (const one of held) await other.tryAcquire(one, now());
    const waiters = [claim("f1"), claim("f2")];
    for (const one of waiters) await ours.queue!.enqueue(one, now());
    const blocker = await server.client();
    await blocker.query("BEGIN; SELECT FROM holdfast.resources WHERE name = 'f1' FOR UPDATE");
    const [first, second] = await ours.queue!.heartbeat(waiters, now());
    assert.equal(first!.kind, "failed");
    assert.equal(second!.kind, "queued");
    const renewals = await other.renew(
      held.map((one) => ({ ...one, ttlMs: 9_000 })),
      now(),
    );
    assert.deepEqual(
      renewals.map(({ kind }) => kind),
      ["renewed", "renewed"],
    );
    await blocker.query("ROLLBACK");
  });

  it("a deadlock is retried and reported", async (server) => {
    const locks = server.locks();
    await (await locks.acquire("g")).release();
    const reported: string[] = [];
    const onFailed = (event: unknown) => reported.push((event as { during: string }).during);
    subscribe("holdfast:failed", onFailed);
    // Our statement has locked the resource and wants the grant; the other one has locked the grant
    // and wants the resource.
    const lease = await locks.acquire("g");
    const blocker = await server.client();
    await blocker.query("SET deadlock_timeout = '10s'; BEGIN");
    const { pid } = (await blocker.query("SELECT pg_backend_pid() AS pid")).rows[0];
    await blocker.query("SELECT FROM holdfast.grants WHERE resource = 'g' FOR UPDATE");
    const released = lease.release();
    await until("the release waits for it", async () => {
      const waiting = "SELECT FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))";
      const { rows } = await server.admin.query(waiting, [pid]);
      return rows.length > 0;
    });
    const blocked = blocker.query("SELECT FROM holdfast.resources WHERE name = 'g' FOR UPDATE");
    blocked.catch(() => {});
    await Promise.race([blocked, sleep(9_000, null, { ref: false })]);
    await blocker.query("ROLLBACK");
    assert.equal(await released, "released");
    unsubscribe("holdfast:failed", onFailed);
    assert.ok(reported.includes("retry"), `reported: ${reported}`);
  });

  it("the error for a missing schema names the call that creates it, and the schema is found afterwards", async (server) => {
    const engine = server.engine({ schema: "elsewhere" });
    await assert.rejects(engine.tryAcquire(claim("h"), now()), (error: EngineError) => {
      assert.match(error.message, /init\(client, \{ schema: "elsewhere" \}\)/);
      return error.effect === "none";
    });
    const pools = [server.pool(), server.pool()];
    await Promise.all(pools.map((pool) => init(pool, { schema: "elsewhere" })));
    assert.equal((await engine.tryAcquire(claim("h"), now())).kind, "granted");
  });

  it("an older schema names the call that updates it, a newer one asks for a newer library", async (server) => {
    await init(server.admin, { schema: "aged" });
    const become = (version: number) =>
      server.admin.query(
        `CREATE OR REPLACE FUNCTION aged.version() RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT ${version}'`,
      );
    await become(0);
    const engine = server.engine({ schema: "aged" });
    await assert.rejects(engine.tryAcquire(claim("i"), now()), /version 0.*init/);
    await become(99);
    await assert.rejects(engine.tryAcquire(claim("i"), now()), /version 99.*Update holdfast/);
    await assert.rejects(init(server.admin, { schema: "aged" }), /Update holdfast/);
    await become(0);
    await init(server.admin, { schema: "aged" });
    assert.equal((await engine.tryAcquire(claim("i"), now())).kind, "granted");
  });

  it("a schema of version 1 is updated, and its grants are kept", async (server) => {
    await init(server.admin, { schema: "first" });
    const held = claim("p");
    await server.engine({ schema: "first" }).tryAcquire(held, now());
    await server.admin.query(`ALTER TABLE first.resources DROP COLUMN due_at;
      CREATE OR REPLACE FUNCTION first.version() RETURNS integer LANGUAGE sql AS 'SELECT 1'`);
    const engine = server.engine({ schema: "first" });
    await assert.rejects(engine.tryAcquire(claim("p"), now()), /version 1, and 7.*init/);
    await init(server.admin, { schema: "first" });
    assert.equal((await engine.tryAcquire(claim("p"), now())).kind, "busy");
    const text = "SELECT due_at <= now() AS known FROM first.resources";
    assert.deepEqual((await server.admin.query(text)).rows, [{ known: true }]);
    const [released] = await engine.release([{ ...held, tombstoneMs: 0 }], now());
    assert.equal(released!.kind, "released");
    assert.equal((await engine.tryAcquire(claim("p"), now())).kind, "granted");
  });

  it("a schema of version 2 is updated, and loses its old routines", async (server) => {
    const routines = async (schema: string) => {
      const text = `SELECT p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')' AS name
        FROM pg_proc p WHERE p.pronamespace = '${schema}'::regnamespace ORDER BY 1`;
      return (await server.admin.query(text)).rows.map(({ name }) => name.replaceAll(schema, ""));
    };
    await init(server.admin, { schema: "second" });
    const [held, waits] = [claim("q"), claim("q")];
    const before = server.engine({ schema: "second" });
    await before.tryAcquire(held, now());
    await before.queue!.enqueue(waits, now());
    // As in version 2: one minute fixed in the table, and routines without a parameter for another
    // time.
    await server.admin.query(`
      ALTER TABLE second.resources ALTER COLUMN due_at SET DEFAULT now() + interval '1 minute';
      ALTER TABLE second.resources DROP held, DROP counted_until;
      ALTER TABLE second.waiters DROP nth;
      DROP INDEX second.grants_token;
      CREATE INDEX grants_resource ON second.grants (resource);
      ALTER TABLE second.grants DROP renewal_order, DROP token_index, DROP is_left;
      ALTER TABLE second.advisory DROP renewal_order, DROP token_index;
      DROP FUNCTION second.run, second.run_one, second.carry_out, second.hand_over, second.sweep,
        second.advisory_run, second.advisory_sweep, second.idle_since;
      CREATE OR REPLACE FUNCTION second.version() RETURNS integer LANGUAGE sql AS 'SELECT 2'`);
    for (const old of OLD_ROUTINES) {
      await server.admin.query(
        `CREATE FUNCTION second.${old} RETURNS integer LANGUAGE sql AS 'SELECT 1'`,
      );
    }
    const engine = server.engine({ schema: "second", idleMs: 1_000 });
    await assert.rejects(engine.tryAcquire(claim("q"), now()), /version 2, and 7.*init/);
    await init(server.admin, { schema: "second" });
    assert.deepEqual(await routines("second"), await routines("holdfast"));
    assert.equal((await engine.tryAcquire(claim("q"), now())).kind, "busy");
    const [released] = await engine.release([{ ...held, tombstoneMs: 0 }], now());
    assert.equal(released!.kind, "released");
    assert.equal((await engine.queue!.heartbeat([waits], now()))[0]!.kind, "granted");
    await engine.tryAcquire(claim("q2"), now());
    const text = "SELECT due_at <= now() AS known FROM second.resources WHERE name = 'q2'";
    assert.deepEqual((await server.admin.query(text)).rows, [{ known: true }]);
  });

  it("a user with nothing but the documented rights can do everything", async (server) => {
    await server.admin.query(`
      CREATE ROLE app LOGIN;
      GRANT USAGE ON SCHEMA holdfast TO app;
      GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA holdfast TO app;
      CREATE ROLE stranger LOGIN`);
    const [ours, other] = [server.locks({ pool: { user: "app" } }), server.locks()];
    const lease = await ours.acquire("j");
    const waiting = other.acquire("j");
    await server.untilWaiters("j", 1);
    assert.equal(await ours.check(lease.sequencer), true);
    await lease.renew();
    assert.equal(await lease.release(), "released");
    const next = await waiting;
    assert.equal(await ours.revoke("j", { token: next.token }), "revoked");
    for await (const view of ours.list({ match: "j" })) assert.equal(view.resource, "j");
    const direct = server.pool({ user: "app" });
    await assert.rejects(direct.query("DELETE FROM holdfast.grants"), { code: "42501" });
    const stranger = server.engine({ pool: { user: "stranger" } });
    await assert.rejects(stranger.tryAcquire(claim("j"), now()), /docs\/engines\/postgres\.md/);
  });

  it("an invalid client, schema or option is refused at once", async (server) => {
    const client = server.pool();
    assert.throws(() => postgresEngine({ client: {} as never }), UsageError);
    assert.throws(() => postgresEngine({ client, schema: "Bad-Name" }), UsageError);
    assert.throws(() => postgresEngine({ client, listen: "no" as never }), UsageError);
  });

  it("a session that ends in the packet that begins it does not end the process", async (server) => {
    await using rejecting = await startRejectingServer();
    const pool = server.pool({ port: rejecting.port, max: 1 });
    const engine = postgresEngine({ client: pool, listen: false });
    await assert.rejects(engine.tryAcquire(claim("q"), now()), EngineError);
    await engine.close();
  });
});

/** Accepts every connection and terminates it in the same packet. */
async function startRejectingServer(): Promise<AsyncDisposable & { port: number }> {
  const ok = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0]);
  const ready = Buffer.from([0x5a, 0, 0, 0, 5, 0x49]);
  const words = Buffer.from("SFATAL\0C57P01\0Mterminating connection\0\0");
  const head = Buffer.from([0x45, 0, 0, 0, words.length + 4]);
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => socket.end(Buffer.concat([ok, ready, head, words])));
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      await new Promise((closed) => server.close(closed));
    },
  };
}
