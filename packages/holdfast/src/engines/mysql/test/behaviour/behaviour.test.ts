// What is this database's alone: polling, sessions and their settings, refusals.
import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { setTimeout as sleep } from "node:timers/promises";
import mysql from "mysql2";
import { type EngineError, UsageError } from "../../../../errors.js";
import { Locks } from "../../../../locks.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import {
  expectEmptyPoolTold,
  expectRefusingPoolTold,
} from "../../../../test-support/sql/empty-pool.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { init, mysqlEngine } from "../../index.js";
import { scenes } from "../support/test-server.fixture.js";

scenes({ args: ["--default-time-zone=+05:30"] }, (play) => {
  play("a free resource takes one statement to acquire and one to release", async (ground) => {
    const pool = ground.pool();
    const count = countCalls(pool);
    await using locks = new Locks(mysqlEngine({ client: pool }));
    await (await locks.acquire("a")).release();
    const before = count();
    const lease = await locks.acquire("a");
    assert.equal(count(), before + 1);
    await lease.release();
    assert.equal(count(), before + 2);
  });

  play("500 waiters behind one holder send fewer than 100 calls a second", async (ground) => {
    const pool = ground.pool();
    const count = countCalls(pool);
    await using ours = new Locks(mysqlEngine({ client: pool }));
    const other = ground.locks();
    const held = await other.acquire("b");
    const order: number[] = [];
    const options = { fair: "strict", waitMs: 120_000, callTimeoutMs: 60_000 } as const;
    const waits = Array.from({ length: 500 }, async (_, i) => {
      const lease = await ours.acquire("b", options);
      order.push(i);
      await lease.release();
    });
    // Handled at once: a test that fails before it comes to them closes what they wait with.
    const served = Promise.all(waits);
    served.catch(() => {});
    await ground.untilWaiters("b", 500);
    const before = count();
    const from = performance.now();
    await sleep(1_500);
    const perSecond = (count() - before) / ((performance.now() - from) / 1_000);
    assert.ok(perSecond > 0 && perSecond < 100, `${perSecond} calls a second`);
    await held.release();
    await served;
    assert.deepEqual(order, [...order.keys()], "they were served in the order in which they came");
  });

  play(
    "nobody is told of a hand-over between two processes, and the head looks",
    async (ground) => {
      const [ours, other] = [ground.locks(), ground.locks()];
      for (let i = 0; i < 5; i++) {
        const lease = await ours.acquire("c", { fair: "strict" });
        const waiting = other.acquire("c", { fair: "strict" });
        await ground.untilWaiters("c", 1);
        await lease.release();
        const next = await waiting;
        assert.ok(next.token > lease.token);
        await next.release();
      }
    },
  );

  play("time zone, character set and mode of the session do not matter", async (ground) => {
    const ours = ground.locks({ pool: { timezone: "Z", charset: "latin1_swedish_ci" } });
    const strange = ground.pool({ charset: "latin1_swedish_ci" });
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

  play("the clock is read after the lock, not when the routine began", async (ground) => {
    const ours = ground.engine();
    await ours.tryAcquire(claim("e", { ttlMs: 700 }), now());
    const blocker = await ground.pool().getConnection();
    await blocker.query("START TRANSACTION");
    await blocker.query("SELECT * FROM holdfast_resources WHERE name = 'e' FOR UPDATE");
    const asked = ours.queue!.enqueue(claim("e"), now());
    await sleep(800);
    await blocker.query("ROLLBACK");
    blocker.release();
    assert.equal((await asked).kind, "granted", "the grant had expired when the lock was there");
  });

  play("a patient first claim outlives the impatient one it came with", async (ground) => {
    const pool = ground.pool({ connectionLimit: 1 });
    await using locks = new Locks(mysqlEngine({ client: pool }));
    const busy = await pool.getConnection();
    const impatient = locks.tryAcquire("s1", { callTimeoutMs: 200 });
    const patient = locks.tryAcquire("s2", { callTimeoutMs: 60_000 });
    await assert.rejects(impatient, { effect: "none" });
    busy.release();
    assert.ok((await patient)?.held);
  });

  play("a pool with callbacks will do", async (ground) => {
    const { port } = ground.server;
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

  play("sessions that are all killed under way make no second holder", async (ground) => {
    const clients = [1, 2, 3].map(() => ground.locks());
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
      const [rows] = await ground.admin.query(
        "SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND command <> 'Daemon'",
      );
      for (const { id } of rows as { id: number }[]) {
        await ground.admin.query(`KILL ${id}`).catch(() => {});
      }
      await Promise.race([all, sleep(80)]);
    }
    await all;
  });

  play("deadlocks are tried again, and told", async (ground) => {
    const locks = ground.locks();
    const lease = await locks.acquire("h");
    const told: string[] = [];
    const hear = (event: unknown) => told.push((event as { during: string }).during);
    subscribe("holdfast:failed", hear);
    // Heavier than ours, so that the server rolls ours back: it counts the rows that were changed.
    const blocker = await ground.pool().getConnection();
    await blocker.query("CREATE TABLE IF NOT EXISTS weight (n INT)");
    await blocker.query("START TRANSACTION");
    await blocker.query("INSERT INTO weight VALUES (1),(2),(3),(4),(5),(6),(7),(8),(9),(10)");
    await blocker.query("SELECT * FROM holdfast_grants WHERE resource = 'h' FOR UPDATE");
    const released = lease.release();
    await until("the release waits for it", async () => {
      // Whoever looks more often is shown what it saw the last time.
      await sleep(120);
      const [rows] = await ground.admin.query(
        "SELECT 1 FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'",
      );
      return (rows as unknown[]).length > 0;
    });
    await blocker.query("SELECT * FROM holdfast_resources WHERE name = 'h' FOR UPDATE");
    await blocker.query("ROLLBACK");
    blocker.release();
    assert.equal(await released, "released");
    unsubscribe("holdfast:failed", hear);
    assert.ok(told.includes("retry"), `told: ${told}`);
  });

  play("a missing or older schema names the call that helps", async (ground) => {
    const engine = ground.engine({ prefix: "other_" });
    await assert.rejects(engine.tryAcquire(claim("j"), now()), (error: EngineError) => {
      assert.match(error.message, /init\(client, \{ prefix: "other_" \}\)/);
      return error.effect === "none";
    });
    const pools = [ground.pool(), ground.pool()];
    await Promise.all(pools.map((pool) => init(pool, { prefix: "other_" })));
    assert.equal((await engine.tryAcquire(claim("j"), now())).kind, "granted");
    await ground.admin.query("DROP PROCEDURE other_version");
    await ground.admin.query("CREATE PROCEDURE other_version() SELECT 1 AS answer");
    const late = ground.engine({ prefix: "other_" });
    await assert.rejects(late.tryAcquire(claim("j"), now()), /version 1, and 7.*init/);
    await ground.admin.query(`DROP PROCEDURE other_look; DROP PROCEDURE other_run;
      CREATE PROCEDURE other_run(IN p_ops LONGTEXT, IN p_wait_s INT) SELECT '[]' AS answer`);
    await ground.admin.query(`ALTER TABLE other_grants
      DROP COLUMN renewal_order, DROP COLUMN token_index, DROP COLUMN is_left`);
    await init(ground.admin, { prefix: "other_" });
    assert.equal((await late.inspect("j", now())).holders.length, 1, "what was held is still held");
    assert.equal((await late.tryAcquire(claim("k"), now())).kind, "granted");
  });

  play("a user with nothing but the documented right can do everything", async (ground) => {
    await ground.admin.query("CREATE USER app; GRANT EXECUTE ON holdfast_test.* TO app");
    await ground.admin.query("CREATE USER stranger; GRANT USAGE ON *.* TO stranger");
    const [ours, other] = [ground.locks({ pool: { user: "app" } }), ground.locks()];
    const lease = await ours.acquire("l");
    const waiting = other.acquire("l");
    await ground.untilWaiters("l", 1);
    assert.equal(await ours.check(lease.sequencer), true);
    await lease.renew();
    assert.equal(await lease.release(), "released");
    const next = await waiting;
    assert.equal(await ours.revoke("l", { token: next.token }), "revoked");
    for await (const view of ours.list({ match: "l" })) assert.equal(view.resource, "l");
    const direct = ground.pool({ user: "app" });
    await assert.rejects(direct.query("DELETE FROM holdfast_grants"), { errno: 1142 });
    const stranger = ground.engine({ pool: { user: "stranger" } });
    await assert.rejects(stranger.tryAcquire(claim("l"), now()), /docs\/engines\/mysql\.md/);
  });

  play("an empty pool is told as such, and what was not sent leaves nothing", async (ground) => {
    const pool = ground.pool({ connectionLimit: 1 });
    await using locks = new Locks(mysqlEngine({ client: pool }));
    await expectEmptyPoolTold({ locks, borrow: () => pool.getConnection() }, "m");
  });

  play("a pool that lets nobody wait is told as such, too", async (ground) => {
    const pool = ground.pool({ connectionLimit: 1, waitForConnections: false });
    await using locks = new Locks(mysqlEngine({ client: pool }));
    await expectRefusingPoolTold({ locks, borrow: () => pool.getConnection() }, "n");
  });

  play("what is no pool or no prefix is refused at the door", async (ground) => {
    assert.throws(() => mysqlEngine({ client: {} as never }), UsageError);
    assert.throws(() => mysqlEngine({ client: ground.pool(), prefix: "x'; --" }), UsageError);
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
