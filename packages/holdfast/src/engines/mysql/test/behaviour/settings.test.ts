// Settings that routines change in users' sessions are restored afterwards.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { isMysql } from "@holdfast/servers";
import type mysql from "mysql2/promise";
import type { Engine } from "../../../../engine.js";
import { EngineError } from "../../../../errors.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { claimInTransaction, fenceInTransaction, init } from "../../index.js";
import { describeWithMysql, type MysqlTestServer } from "../support/test-server.fixture.js";

const OWN = "SET time_zone = '-03:30', innodb_lock_wait_timeout = 7, group_concat_max_len = 2048";
const SETTINGS = `SELECT @@SESSION.time_zone AS zone, @@SESSION.innodb_lock_wait_timeout AS waitS,
  @@SESSION.group_concat_max_len AS concat, @@SESSION.sql_mode AS mode
  /*M!110602 , @@SESSION.innodb_snapshot_isolation AS snapshot */`;

type AskEngine = (engine: Engine, resource: string, id: string) => Promise<unknown>;

/** Calls that wait for the transaction that has locked this resource. */
const CALLS: readonly AskEngine[] = [
  (engine, resource) => engine.tryAcquire(claim(resource), now()),
  (engine, resource, grantId) => engine.queue!.heartbeat([{ resource, grantId }], now()),
];

/** A call that waits for nobody. */
const renew: AskEngine = (engine, resource, grantId) =>
  engine.renew([{ resource, grantId, ttlMs: 10_000 }], now());

describeWithMysql({ args: ["--default-time-zone=+05:30"] }, (it) => {
  it("successful, refused and killed calls restore the settings of a pool's session", async (server) => {
    const client = server.pool({ connectionLimit: 1 });
    client.pool.on("connection", (connection) => connection.query(OWN));
    const engine = server.engine({ client });
    const held = claim("b");
    await engine.tryAcquire(held, now());
    const before = await settings(client);
    const { zone, waitS, concat } = before;
    assert.deepEqual([zone, waitS, concat], ["-03:30", 7, 2_048]);
    await engine.inspect("b", now());
    await engine.list({ match: "*", cursor: null, max: 10 }, now());
    for (const call of [...CALLS, renew]) await call(engine, "b", held.grantId);
    assert.deepEqual(await settings(client), before, "after calls that ended well");
    const unlock = await lock(server, "b");
    await renew(engine, "b", held.grantId);
    assert.deepEqual(await settings(client), before, "after a renewal of what is locked");
    for (const [i, call] of CALLS.entries()) {
      await call(engine, "b", held.grantId).catch(() => {});
      assert.deepEqual(await settings(client), before, `call ${i}, which waited too long`);
      const threadId = await idOf(client);
      const ended = call(engine, "b", held.grantId).catch((error: unknown) => error);
      await kill(server, threadId);
      const error = await ended;
      assert.ok(error instanceof EngineError && error.effect === "unknown", String(error));
      assert.deepEqual(await settings(client), before, `call ${i}, which was killed`);
      // Between two statements of a routine a kill runs no handler, so nothing is restored.
      assert.notEqual(await idOf(client), threadId, "the session of a killed call is used again");
    }
    // MySQL has such a limit for plain reads only.
    if (!isMysql()) {
      await client.query("SET max_statement_time = 0.2");
      const late = await CALLS[0]!(engine, "b", held.grantId).catch((error: unknown) => error);
      assert.ok(late instanceof EngineError && late.effect === "unknown", String(late));
      assert.deepEqual(await settings(client), before, "a call that took longer than it may");
    }
    await unlock();
  });

  it("a claim in a transaction restores the settings of the user's session", async (server) => {
    const session = await server.connection();
    await session.query(OWN);
    const before = await settings(session);
    const attempt = async () => {
      await session.query("START TRANSACTION");
      return claimInTransaction(session, "c").finally(() => session.query("ROLLBACK"));
    };
    assert.notEqual(await attempt(), null);
    assert.deepEqual(await settings(session), before, "after a claim");
    const unlock = await lock(server, "c");
    assert.equal(await attempt(), null);
    assert.deepEqual(await settings(session), before, "after a failed claim");
    const killed = assert.rejects(attempt(), EngineError);
    await kill(server, session.threadId);
    await killed;
    assert.deepEqual(await settings(session), before, "after one that was killed");
    await unlock();
  });

  it("a claim that is rolled back by a deadlock restores the settings of the user's session", async (server) => {
    const session = await server.connection();
    await session.query(OWN);
    const before = await settings(session);
    // The other one is heavier, by the number of changed rows, so the server ends ours.
    const other = await server.connection();
    await other.query("CREATE TABLE weight (n INT)");
    await other.query("START TRANSACTION");
    await other.query("INSERT INTO weight VALUES (1),(2),(3),(4),(5),(6),(7),(8),(9),(10)");
    await other.query("INSERT INTO holdfast_resources (name, used_us) VALUES ('d', 0)");
    await session.query("START TRANSACTION");
    await session.query("INSERT INTO holdfast_resources (name, used_us) VALUES ('d2', 0)");
    const claimed = assert.rejects(
      claimInTransaction(session, "d", { waitMs: 20_000 }),
      EngineError,
    );
    await untilWaiting(server, session.threadId);
    await other.query("SELECT * FROM holdfast_resources WHERE name = 'd2' FOR UPDATE");
    await claimed;
    assert.deepEqual(await settings(session), before);
    await other.query("ROLLBACK");
  });

  it("a user that may create routines, but has no EXECUTE right, can run init", async (server) => {
    const rights = `CREATE, ALTER, DROP, INDEX, SELECT, INSERT, UPDATE, DELETE, CREATE ROUTINE,
      ALTER ROUTINE`;
    await server.admin.query(
      `CREATE USER creator; GRANT ${rights} ON holdfast_test.* TO creator;
      SET GLOBAL log_bin_trust_function_creators = 1`,
    );
    const options = { prefix: "creator_" };
    await init(server.pool({ user: "creator" }), options);
    assert.equal((await server.engine(options).tryAcquire(claim("e"), now())).kind, "granted");
  });

  for (const read of [{ nestTables: true }, { typeCast: false }, { rowsAsArray: true }]) {
    it(`a pool with ${JSON.stringify(read)} works`, async (server) => {
      const client = server.pool(read);
      await init(client);
      const locks = server.locks({ client });
      const lease = await locks.acquire("f");
      assert.equal(await locks.tryAcquire("f", { fair: "strict" }), null);
      await lease.renew();
      assert.equal(await locks.check(lease.sequencer), true);
      assert.equal((await locks.inspect("f")).holders[0]!.token, lease.token);
      const session = await client.getConnection();
      await session.query("START TRANSACTION");
      await fenceInTransaction(session, lease.sequencer);
      assert.notEqual(await claimInTransaction(session, "g"), null);
      assert.equal(await claimInTransaction(session, "f"), null);
      await session.query("ROLLBACK");
      session.release();
      assert.equal(await lease.release(), "released");
    });
  }

  it("a schema that cannot be made leaves the mode of its session as it was", async (server) => {
    await server.admin.query(
      "CREATE USER poor; GRANT SELECT, CREATE, EXECUTE ON holdfast_test.* TO poor",
    );
    const client = server.pool({ user: "poor", connectionLimit: 1 });
    const before = await settings(client);
    await assert.rejects(init(client, { prefix: "poor_" }));
    assert.deepEqual(await settings(client), before);
  });
});

async function idOf(client: mysql.Pool): Promise<number> {
  return ((await client.query("SELECT CONNECTION_ID() AS id"))[0] as { id: number }[])[0]!.id;
}

async function settings(client: mysql.Pool | mysql.Connection): Promise<Record<string, unknown>> {
  return { ...((await client.query(SETTINGS))[0] as Record<string, unknown>[])[0] };
}

/** Locks the resource until the returned function is called. */
async function lock(server: MysqlTestServer, resource: string): Promise<() => Promise<unknown>> {
  await server.admin.query(
    `INSERT IGNORE INTO holdfast_resources (name, used_us) VALUES ('${resource}', 0)`,
  );
  const blocker = await server.connection();
  await blocker.query("START TRANSACTION");
  await blocker.query(`SELECT * FROM holdfast_resources WHERE name = '${resource}' FOR UPDATE`);
  await blocker.query(`SELECT * FROM holdfast_grants WHERE resource = '${resource}' FOR UPDATE`);
  return () => blocker.query("ROLLBACK");
}

/** Kills the session's statement once it waits for a lock. */
async function kill(server: MysqlTestServer, threadId: number): Promise<void> {
  await untilWaiting(server, threadId);
  await server.admin.query(`KILL QUERY ${threadId}`);
}

async function untilWaiting(server: MysqlTestServer, threadId: number): Promise<void> {
  const text = `SELECT COUNT(*) AS n FROM information_schema.innodb_trx
    WHERE trx_mysql_thread_id = ${threadId} AND trx_state = 'LOCK WAIT'`;
  await until(`session ${threadId} waits for a lock`, async () => {
    // The server caches this table for 100 ms.
    await sleep(120);
    return ((await server.admin.query(text))[0] as { n: number }[])[0]!.n === 1;
  });
}
