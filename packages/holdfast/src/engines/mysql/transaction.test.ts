import assert from "node:assert/strict";
import mysql from "mysql2";
import { FencedOutError, UsageError } from "../../errors.js";
import {
  type TransactionIt,
  testClaims,
  testFences,
} from "../../test-support/sql/transactions.fixture.js";
import { claimInTransaction, fenceInTransaction, init } from "./index.js";
import { describeWithMysql, type MysqlTestServer } from "./test/support/test-server.fixture.js";

function transactionServer(server: MysqlTestServer) {
  return {
    locks: () => server.locks(),
    async session() {
      const connection = await server.connection();
      return {
        query: (text: string) => connection.query(text),
        fence: (sequencer: string) => fenceInTransaction(connection, sequencer),
        claim: (resource: string, options = {}) =>
          claimInTransaction(connection, resource, options),
      };
    },
    count: (table: string, where?: string) => server.count(table, where),
    untilWaiters: (resource: string, count: number) => server.untilWaiters(resource, count),
    claimFromPool: (resource: string) => claimInTransaction(server.pool(), resource),
  };
}

describeWithMysql({}, (it) => {
  const common: TransactionIt = (title, part) =>
    it(title, (server) => part(transactionServer(server)));
  testFences(common);
  testClaims(common);

  it("a fence in a database without these tables says that the lock is elsewhere", async (server) => {
    const lease = await server.locks().acquire("elsewhere");
    await server.admin.query("CREATE DATABASE without_locks");
    const connection = await server.connection();
    try {
      await connection.query("USE without_locks");
      for (const ask of [
        () => fenceInTransaction(connection, lease.sequencer),
        () => claimInTransaction(connection, "elsewhere"),
      ]) {
        await connection.query("START TRANSACTION");
        await assert.rejects(ask(), {
          ...{ code: "ENGINE", effect: "none", retryable: false, reason: "not-prepared" },
          message: /this database has no tables "holdfast_…" for locks: .*another database/,
        });
        await connection.query("ROLLBACK");
      }
    } finally {
      await server.admin.query("DROP DATABASE without_locks");
    }
  });

  it("claims and fences are refused in the tables of ShedLock", async (server) => {
    await init(server.admin, { shedlock: "shedlock" });
    await server.admin.query(`INSERT INTO shedlock
      VALUES ('job', UTC_TIMESTAMP(3) + INTERVAL 1 MINUTE, UTC_TIMESTAMP(3), 'java')`);
    const lease = await server.locks({ hold: "shedlock" }).acquire("f", { ttlMs: 60_000 });
    const connection = await server.connection();
    const options = { prefix: "holdfast_shed_" };
    for (const ask of [
      () => claimInTransaction(connection, "job", options),
      () => fenceInTransaction(connection, lease.sequencer, options),
    ]) {
      await connection.query("START TRANSACTION");
      await assert.rejects(ask(), (error: unknown) => {
        return error instanceof UsageError && /ShedLock/.test(error.message);
      });
      await connection.query("ROLLBACK");
    }
  });

  it("a fence refuses the old holder, whatever the transaction's snapshot shows", async (server) => {
    const [locks, other] = [server.locks(), server.locks()];
    const connection = await server.connection();
    const lease = await locks.acquire("c");
    await connection.query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ");
    await connection.query("START TRANSACTION WITH CONSISTENT SNAPSHOT");
    const waiting = other.acquire("c");
    await server.untilWaiters("c", 1);
    await lease.release();
    const next = await waiting;
    const [rows] = await connection.query("SELECT token FROM holdfast_grants WHERE resource = 'c'");
    assert.equal(
      (rows as { token: number }[])[0]!.token,
      Number(lease.token),
      "the snapshot is old",
    );
    await assert.rejects(fenceInTransaction(connection, lease.sequencer), FencedOutError);
    await fenceInTransaction(connection, next.sequencer);
    await connection.query("ROLLBACK");
  });

  it("a claim depends on what is committed, not on the transaction's snapshot", async (server) => {
    const [locks, connection] = [server.locks(), await server.connection()];
    await (await locks.acquire("i")).release();
    await connection.query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ");
    await connection.query("START TRANSACTION WITH CONSISTENT SNAPSHOT");
    const lease = await locks.acquire("i");
    assert.equal(await claimInTransaction(connection, "i"), null);
    await connection.query("ROLLBACK");
    assert.equal(await lease.release(), "released");
    await connection.query("START TRANSACTION");
    const claim = await claimInTransaction(connection, "i");
    assert.ok(claim !== null && claim.token > lease.token);
    await connection.query("COMMIT");
  });

  it("a shared lease of a semaphore can be fenced", async (server) => {
    const [locks, connection] = [server.locks(), await server.connection()];
    const semaphore = locks.semaphore("j", { permits: 2 });
    const [first, second] = [await semaphore.acquire(), await semaphore.acquire()];
    await first.release();
    await connection.query("START TRANSACTION");
    await assert.rejects(fenceInTransaction(connection, first.sequencer), FencedOutError);
    await fenceInTransaction(connection, second.sequencer);
    await connection.query("COMMIT");
  });

  it("a revoked lease is refused", async (server) => {
    const [locks, connection] = [server.locks(), await server.connection()];
    const lease = await locks.acquire("k");
    await locks.revoke("k", { token: lease.token });
    await connection.query("START TRANSACTION");
    await assert.rejects(fenceInTransaction(connection, lease.sequencer), FencedOutError);
    await connection.query("ROLLBACK");
  });

  it("a connection with callbacks works", async (server) => {
    const { port } = server.instance;
    const connection = mysql.createConnection({
      ...{ host: "127.0.0.1", user: "root", port, database: "holdfast_test" },
    });
    await connection.promise().query("START TRANSACTION");
    assert.notEqual(await claimInTransaction(connection, "l"), null);
    await connection.promise().query("COMMIT");
    connection.destroy();
  });
});
