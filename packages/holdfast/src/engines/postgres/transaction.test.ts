import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { UsageError } from "../../errors.js";
import {
  type TransactionIt,
  testClaims,
  testFences,
} from "../../test-support/sql/transactions.fixture.js";
import { claimInTransaction, fenceInTransaction, init } from "./index.js";
import {
  describeWithPostgres,
  type PostgresTestServer,
} from "./test/support/test-server.fixture.js";

function transactionServer(server: PostgresTestServer) {
  return {
    locks: () => server.locks(),
    async session() {
      const client = await server.client();
      return {
        query: (text: string) => client.query(text),
        fence: (sequencer: string) => fenceInTransaction(client, sequencer),
        claim: (resource: string, options = {}) => claimInTransaction(client, resource, options),
      };
    },
    async count(table: string, where = "true") {
      const text = `SELECT count(*)::int AS n FROM holdfast.${table} WHERE ${where}`;
      return (await server.admin.query(text)).rows[0].n as number;
    },
    untilWaiters: (resource: string, count: number) => server.untilWaiters(resource, count),
    claimFromPool: (resource: string) => claimInTransaction(server.pool(), resource),
  };
}

describeWithPostgres({}, (it) => {
  const common: TransactionIt = (title, part) =>
    it(title, (server) => part(transactionServer(server)));
  testFences(common);
  testClaims(common);

  it("a fence in a database without these tables says that the lock is elsewhere", async (server) => {
    const lease = await server.locks().acquire("elsewhere");
    await server.admin.query("CREATE DATABASE without_locks");
    const client = new pg.Client({
      ...{ host: "127.0.0.1", user: "postgres", port: server.instance.port },
      database: "without_locks",
    });
    await client.connect();
    try {
      for (const ask of [
        () => fenceInTransaction(client, lease.sequencer),
        () => claimInTransaction(client, "elsewhere"),
      ]) {
        await client.query("BEGIN");
        await assert.rejects(ask(), {
          ...{ code: "ENGINE", effect: "none", retryable: false, reason: "not-prepared" },
          message:
            /this database has no schema "holdfast" with tables for locks: .*another database/,
        });
        await client.query("ROLLBACK");
      }
    } finally {
      await client.end();
      await server.admin.query("DROP DATABASE without_locks");
    }
  });

  for (const level of ["REPEATABLE READ", "SERIALIZABLE"]) {
    it(`a fence is refused under ${level}, whose snapshot is outdated`, async (server) => {
      const [locks, client] = [server.locks(), await server.client()];
      const begin = async () => {
        await client.query(`BEGIN ISOLATION LEVEL ${level}`);
        await client.query("SELECT count(*) FROM holdfast.grants");
      };
      const isRefused = (error: unknown) =>
        error instanceof UsageError && /READ COMMITTED/.test(error.message);
      // In the snapshot its ttl is soon over, but it is renewed all the time.
      const renewed = await locks.acquire(`c-${level}`, { ttlMs: 600 });
      await begin();
      await sleep(1_000);
      await assert.rejects(fenceInTransaction(client, renewed.sequencer), isRefused);
      await client.query("ROLLBACK");
      // In the snapshot it is valid.
      const revoked = await locks.acquire(`i-${level}`, { ttlMs: 60_000, renew: false });
      await begin();
      await locks.revoke(revoked.resource, { token: revoked.token });
      await assert.rejects(fenceInTransaction(client, revoked.sequencer), isRefused);
      await client.query("ROLLBACK");
    });
  }

  it("claims and fences are refused in the schema of ShedLock", async (server) => {
    await init(server.admin, { shedlock: "shedlock" });
    await server.admin.query(`INSERT INTO shedlock
      VALUES ('job', timezone('utc', now()) + interval '1 minute', timezone('utc', now()), 'java')`);
    const lease = await server.locks({ hold: "shedlock" }).acquire("f", { ttlMs: 60_000 });
    const client = await server.client();
    const options = { schema: "holdfast_shedlock" };
    for (const ask of [
      () => claimInTransaction(client, "job", options),
      () => fenceInTransaction(client, lease.sequencer, options),
    ]) {
      await client.query("BEGIN");
      await assert.rejects(ask(), (error: unknown) => {
        return error instanceof UsageError && /ShedLock/.test(error.message);
      });
      await client.query("ROLLBACK");
    }
  });

  it("a claim in a transaction leaves no row behind", async (server) => {
    const client = await server.client();
    await client.query("BEGIN");
    assert.notEqual(await claimInTransaction(client, "h"), null);
    await client.query("COMMIT");
    const text = "SELECT count(*)::int AS n FROM holdfast.resources WHERE name = 'h'";
    assert.equal((await server.admin.query(text)).rows[0].n, 0);
  });
});
