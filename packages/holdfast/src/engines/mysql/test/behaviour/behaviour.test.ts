// What is specific to MySQL and MariaDB: polling, sessions and their settings, refusals.
import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { setTimeout as sleep } from "node:timers/promises";
import mysql from "mysql2";
import { type EngineError, UsageError } from "../../../../errors.js";
import { Locks } from "../../../../locks.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import {
  expectEmptyPoolReported,
  expectRefusingPoolReported,
} from "../../../../test-support/sql/empty-pool.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { init, mysqlEngine } from "../../index.js";
import { describeWithMysql } from "../support/test-server.fixture.js";

describeWithMysql({ args: ["--default-time-zone=+05:30"] }, (it) => {
  it("a free resource takes one statement to acquire and one to release", async (server) => {
    const pool = server.pool();
    const count = countCalls(pool);
    await using locks = new Locks(mysqlEngine({ client: pool }));
    await (await locks.acquire("a")).release();
    const before = count();
    const lease = await locks.acquire("a");
    assert.equal(count(), before + 1);
    await lease.release();
    assert.equal(count(), before + 2);
  });

  it("500 waiters behind one holder send fewer than 100 calls a second", async (server) => {
    const pool = server.pool();
    const count = countCalls(pool);
    await using ours = new Locks(mysqlEngine({ client: pool }));
    const other = server.locks();
    const held = await other.acquire("b");
    const order: number[] = [];
    const options = { fair: "strict", waitMs: 120_000, callTimeoutMs: 60_000 } as const;
    const waits = Array.from({ length: 500 }, async (_, i) => {
      const lease = await ours.acquire("b", options);
      order.push(i);
      await lease.release();
    });
    // Handled at once, because a test that fails earlier closes the locks with which they wait.
    const served = Promise.all(waits);
    served.catch(() => {});
    await server.untilWaiters("b", 500);
    const before = count();
    const from = performance.now();
    await sleep(1_500);
    const perSecond = (count() - before) / ((performance.now() - from) / 1_000);
    assert.ok(perSecond > 0 && perSecond < 100, `${perSecond} calls a second`);
    await held.release();
    await served;
    assert.deepEqual(order, [...order.keys()], "they were served in the order in which they came");
  });

  it("the head of the queue polls, because a hand-over between processes sends no notification", async (server) => {
    const [ours, other] = [server.locks(), server.locks()];
    for (let i = 0; i < 5; i++) {
      const lease = await ours.acquire("c", { fair: "strict" });
      const waiting = other.acquire("c", { fair: "strict" });
      await server.untilWaiters("c", 1);
      await lease.release();
      const next = await waiting;
      assert.ok(next.token > lease.token);
      await next.release();
    }
  });

  it("time zone, character set and mode of the session do not matter", async (server) => {
    const ours = server.locks({ pool: { timezone: "Z", charset: "latin1_swedish_ci" } });
    const strange = server.pool({ charset: "latin1_swedish_ci" });
    strange.pool.on("connection", (connection) => {
      connection.query(
        "SET time_zone = '-11:00', sql_mode = 'NO_BACKSLASH_ESCAPES,ANSI_QUOTES,PAD_CHAR_TO_FULL_LENGTH', autocommit = 1",
      );
      connection.query("SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE");
    });
    await using other = new Locks(mysqlEngine({ client: strange }));
    const name = "d'\\\"锁 ";
    const lease = await ours.acquire(name, { ttlMs: 20_000, label: "o'b\\锁" });
    assert.equal(await other.tryAcquire(name), null);
    const view = await other.inspect(name);
    assert.equal(view.holders[0]!.label, "o'b\\锁");
    assert.ok(view.holders[0]!.remainingMs > 0 && view.holders[0]!.remainingMs <= 20_000);
    assert.notEqual(
      await other.tryAcquire(name.trim()),
      null,
      "a name without its space is another",
    );
    await lease.renew();
    assert.equal(await other.check(lease.sequencer), true);
    await lease.release();
    assert.notEqual(await other.tryAcquire(name), null);
  });

  it("the clock is read after the lock, not when the routine began", async (server) => {
    const ours = server.engine();
    await ours.tryAcquire(claim("e", { ttlMs: 700 }), now());
    const blocker = await server.pool().getConnection();
    await blocker.query("START TRANSACTION");
    await blocker.query("SELECT * FROM holdfast_resources WHERE name = 'e' FOR UPDATE");
    const asked = ours.queue!.enqueue(claim("e"), now());
    await sleep(800);
    await blocker.query("ROLLBACK");
    blocker.release();
    assert.equal((await asked).kind, "granted", "the grant had expired when the lock was there");
  });

  it("a claim with a long timeout outlives the schema check of one with a short timeout", async (server) => {
    const pool = server.pool({ connectionLimit: 1 });
    await using locks = new Locks(mysqlEngine({ client: pool }));
    const busy = await pool.getConnection();
    const impatient = locks.tryAcquire("s1", { callTimeoutMs: 200 });
    const patient = locks.tryAcquire("s2", { callTimeoutMs: 60_000 });
    await assert.rejects(impatient, { effect: "none" });
    busy.release();
    assert.ok((await patient)?.held);
  });

  it("a pool with callbacks works", async (server) => {
    const { port } = server.instance;
    const pool = mysql.createPool({
      host: "127.0.0.1",
      user: "root",
      port,
      database: "holdfast_test",
    });
    await using locks = new Locks(mysqlEngine({ client: pool }));
    await (await locks.acquire("f")).release();
    pool.end(() => {});
  });

  it("killing all sessions during calls makes no second holder", async (server) => {
    const clients = [1, 2, 3].map(() => server.locks());
    let inside = 0;
    let done = 0;
    const retry = Array<number>(1_000).fill(20);
    const all = Promise.all(
      clients.flatMap((locks) =>
        Array.from({ length: 4 }, async () => {
          const options = { waitMs: 120_000, retry, fair: "strict", ttlMs: 3_000 } as const;
          const lease = await locks.acquire("g", options);
          assert.equal(++inside, 1);
          await sleep(10);
          inside--;
          await lease.release().catch(() => {});
          done++;
        }),
      ),
    );
    all.catch(() => {});
    for (let round = 0; round < 10 && done < 12; round++) {
      const [rows] = await server.admin.query(
        "SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND command <> 'Daemon'",
      );
      for (const { id } of rows as { id: number }[]) {
        await server.admin.query(`KILL ${id}`).catch(() => {});
      }
      await Promise.race([all, sleep(80)]);
    }
    await all;
  });

  it("deadlocks are retried and reported", async (server) => {
    const locks = server.locks();
    const lease = await locks.acquire("h");
    const reported: string[] = [];
    const onFailed = (event: unknown) => reported.push((event as { during: string }).during);
    subscribe("holdfast:failed", onFailed);
    // Heavier than ours, so that the server rolls ours back: the weight is the number of changed
    // rows.
    const blocker = await server.pool().getConnection();
    await blocker.query("CREATE TABLE IF NOT EXISTS weight (n INT)");
    await blocker.query("START TRANSACTION");
    await blocker.query("INSERT INTO weight VALUES (1),(2),(3),(4),(5),(6),(7),(8),(9),(10)");
    await blocker.query("SELECT * FROM holdfast_grants WHERE resource = 'h' FOR UPDATE");
    const released = lease.release();
    await until("the release waits for it", async () => {
      // The server caches this table for 100 ms.
      await sleep(120);
      const [rows] = await server.admin.query(
        "SELECT 1 FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'",
      );
      return (rows as unknown[]).length > 0;
    });
    await blocker.query("SELECT * FROM holdfast_resources WHERE name = 'h' FOR UPDATE");
    await blocker.query("ROLLBACK");
    blocker.release();
    assert.equal(await released, "released");
    unsubscribe("holdfast:failed", onFailed);
    assert.ok(reported.includes("retry"), `reported: ${reported}`);
  });

  it("the error for a missing or older schema names the call that helps", async (server) => {
    const engine = server.engine({ prefix: "other_" });
    await assert.rejects(engine.tryAcquire(claim("j"), now()), (error: EngineError) => {
      assert.match(error.message, /init\(client, \{ prefix: "other_" \}\)/);
      return error.effect === "none";
    });
    const pools = [server.pool(), server.pool()];
    await Promise.all(pools.map((pool) => init(pool, { prefix: "other_" })));
    assert.equal((await engine.tryAcquire(claim("j"), now())).kind, "granted");
    await server.admin.query("DROP PROCEDURE other_version");
    await server.admin.query("CREATE PROCEDURE other_version() SELECT 1 AS answer");
    const late = server.engine({ prefix: "other_" });
    await assert.rejects(late.tryAcquire(claim("j"), now()), /version 1, and 7.*init/);
    await server.admin.query(`DROP PROCEDURE other_look; DROP PROCEDURE other_run;
      CREATE PROCEDURE other_run(IN p_ops LONGTEXT, IN p_wait_s INT) SELECT '[]' AS answer`);
    await server.admin.query(`ALTER TABLE other_grants
      DROP COLUMN renewal_order, DROP COLUMN token_index, DROP COLUMN is_left`);
    await init(server.admin, { prefix: "other_" });
    assert.equal((await late.inspect("j", now())).holders.length, 1, "what was held is still held");
    assert.equal((await late.tryAcquire(claim("k"), now())).kind, "granted");
  });

  it("a user with nothing but the documented right can do everything", async (server) => {
    await server.admin.query("CREATE USER app; GRANT EXECUTE ON holdfast_test.* TO app");
    await server.admin.query("CREATE USER stranger; GRANT USAGE ON *.* TO stranger");
    const [ours, other] = [server.locks({ pool: { user: "app" } }), server.locks()];
    const lease = await ours.acquire("l");
    const waiting = other.acquire("l");
    await server.untilWaiters("l", 1);
    assert.equal(await ours.check(lease.sequencer), true);
    await lease.renew();
    assert.equal(await lease.release(), "released");
    const next = await waiting;
    assert.equal(await ours.revoke("l", { token: next.token }), "revoked");
    for await (const view of ours.list({ match: "l" })) assert.equal(view.resource, "l");
    const direct = server.pool({ user: "app" });
    await assert.rejects(direct.query("DELETE FROM holdfast_grants"), { errno: 1142 });
    const stranger = server.engine({ pool: { user: "stranger" } });
    await assert.rejects(stranger.tryAcquire(claim("l"), now()), /docs\/engines\/mysql\.md/);
  });

  it("an exhausted pool is reported, and what was not sent leaves nothing behind", async (server) => {
    const pool = server.pool({ connectionLimit: 1 });
    await using locks = new Locks(mysqlEngine({ client: pool }));
    await expectEmptyPoolReported({ locks, borrow: () => pool.getConnection() }, "m");
  });

  it("a pool that lets nobody wait is reported as exhausted", async (server) => {
    const pool = server.pool({ connectionLimit: 1, waitForConnections: false });
    await using locks = new Locks(mysqlEngine({ client: pool }));
    await expectRefusingPoolReported({ locks, borrow: () => pool.getConnection() }, "n");
  });

  it("an invalid pool or prefix is refused at once", async (server) => {
    assert.throws(() => mysqlEngine({ client: {} as never }), UsageError);
    assert.throws(() => mysqlEngine({ client: server.pool(), prefix: "x'; --" }), UsageError);
  });
});

function countCalls(pool: { getConnection(): Promise<unknown> }): () => number {
  let count = 0;
  const getConnection = pool.getConnection.bind(pool);
  pool.getConnection = () => {
    count++;
    return getConnection();
  };
  return () => count;
}
