// Sessions of a pool in which somebody has SET timestamp, which freezes UTC_TIMESTAMP().
import assert from "node:assert/strict";
import type mysql from "mysql2/promise";
import type { Engine } from "../../../../engine.js";
import { UsageError } from "../../../../errors.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { claimInTransaction, init } from "../../index.js";
import { describeWithMysql } from "../support/test-server.fixture.js";

describeWithMysql({}, (it) => {
  for (const shift of [3_600, -3_600]) {
    it(`a session whose clock is frozen at ${shift} s lets in no second holder`, async (server) => {
      const client = server.pool({ connectionLimit: 1 });
      const [frozen, other] = [server.engine({ client }), server.engine()];
      for (const [first, second] of [
        [frozen, other],
        [other, frozen],
      ] as const) {
        await freeze(client, shift);
        const resource = `a${shift}${first === frozen}`;
        const held = claim(resource, { ttlMs: 30_000 });
        const granted = await first.tryAcquire(held, now());
        assert.ok(granted.kind === "granted");
        assert.equal((await second.tryAcquire(claim(resource), now())).kind, "busy");
        const waits = claim(resource);
        assert.equal((await second.queue!.enqueue(waits, now())).kind, "queued");
        assert.equal((await second.queue!.heartbeat([waits], now()))[0]?.kind, "queued");
        await remains(other, resource, 30_000);
        await remains(frozen, resource, 30_000);
        const sequence = { resource, mode: "exclusive", token: granted.token } as const;
        assert.equal(await second.check(sequence, now()), true);
        const page = await frozen.list({ match: resource, cursor: null, max: 10 }, now());
        assert.equal(page.views[0]?.holders.length, 1);
        const [renewed] = await first.renew([{ ...held, ttlMs: 60_000 }], now());
        assert.equal(renewed?.kind, "renewed");
        await remains(other, resource, 60_000);
        const [released] = await first.release([{ ...held, tombstoneMs: 100 }], now());
        assert.equal(released?.kind, "released");
        assert.equal((await second.queue!.heartbeat([waits], now()))[0]?.kind, "granted");
        await second.release([{ ...waits, tombstoneMs: 0 }], now());
        assert.equal(await stampOf(client), await stampOf(client), "the user's clock stays frozen");
      }
    });
  }

  it("a running clock still runs after every call", async (server) => {
    const client = server.pool({ connectionLimit: 1 });
    const engine = server.engine({ client });
    for (let i = 0; i < 50; i++) {
      const held = claim("b");
      await engine.tryAcquire(held, now());
      await engine.renew([{ ...held, ttlMs: 60_000 }], now());
      await engine.inspect("b", now());
      await engine.release([{ ...held, tombstoneMs: 0 }], now());
      assert.notEqual(await stampOf(client), await stampOf(client));
    }
  });

  it("ShedLock's row has the real time, not the session's frozen time", async (server) => {
    await init(server.admin, { shedlock: "shedlock" });
    const client = server.pool({ connectionLimit: 1 });
    await freeze(client, 3_600);
    const engine = server.engine({ client, hold: "shedlock" });
    await engine.tryAcquire(claim("c", { ttlMs: 30_000 }), now());
    const text = `SELECT TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(), lock_until) AS left_s,
      TIMESTAMPDIFF(SECOND, locked_at, UTC_TIMESTAMP()) AS since_s FROM shedlock WHERE name = 'c'`;
    const [row] = (await server.admin.query(text))[0] as { left_s: number; since_s: number }[];
    assert.ok(Math.abs(row!.left_s - 30) < 25 && Math.abs(row!.since_s) < 25, JSON.stringify(row));
  });

  it("a claim in a transaction is refused if the session's clock is frozen", async (server) => {
    const session = await server.connection();
    await session.query("SET timestamp = UNIX_TIMESTAMP() + 3600");
    await session.query("START TRANSACTION");
    await assert.rejects(claimInTransaction(session, "d"), (error: unknown) => {
      return error instanceof UsageError && /SET timestamp/.test(error.message);
    });
    await session.query("ROLLBACK");
    await session.query("SET timestamp = DEFAULT");
    await session.query("START TRANSACTION");
    assert.notEqual(await claimInTransaction(session, "d"), null);
    await session.query("ROLLBACK");
  });
});

async function freeze(client: mysql.Pool, shift: number): Promise<void> {
  await client.query("SET timestamp = DEFAULT");
  await client.query(`SET timestamp = UNIX_TIMESTAMP() + ${shift}`);
}

async function stampOf(client: mysql.Pool): Promise<string> {
  const text = "SELECT CAST(@@SESSION.timestamp AS CHAR) AS stamp";
  return ((await client.query(text))[0] as { stamp: string }[])[0]!.stamp;
}

async function remains(engine: Engine, resource: string, ttlMs: number): Promise<void> {
  const [holder] = (await engine.inspect(resource, now())).holders;
  const ms = holder?.remainingMs ?? 0;
  assert.ok(ms <= ttlMs && ms > ttlMs - 20_000, `${ms} ms are left of ${ttlMs}`);
}
