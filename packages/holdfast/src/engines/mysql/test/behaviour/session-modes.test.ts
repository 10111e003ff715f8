// Sessions of a pool in which transactions begin by themselves, or continue after their end.
import assert from "node:assert/strict";
import type mysql from "mysql2/promise";
import type { EngineError } from "../../../../errors.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { describeWithMysql } from "../support/test-server.fixture.js";

const MODES = [
  "autocommit = 0",
  "completion_type = 'CHAIN'",
  "completion_type = 'RELEASE'",
  "autocommit = 0, completion_type = 'CHAIN'",
];

describeWithMysql({}, (it) => {
  for (const [i, mode] of MODES.entries()) {
    it(`with ${mode} every call works, and leaves no transaction open`, async (server) => {
      const client = server.pool({ connectionLimit: 1 });
      client.pool.on("connection", (connection) => connection.query(`SET SESSION ${mode}`));
      const [engine, other] = [server.engine({ client }), server.engine()];
      const resource = `mode-${i}`;
      const session = await state(client);
      const calm = async (what: string) =>
        assert.deepEqual(await state(client), session, `after ${what}`);
      for (let round = 0; round < 3; round++) {
        const [held, waits, leaves] = [claim(resource), claim(resource), claim(resource)];
        const granted = await engine.tryAcquire(held, now());
        assert.ok(granted.kind === "granted");
        await calm("an acquire");
        assert.equal((await engine.tryAcquire(claim(resource), now())).kind, "busy");
        for (const one of [waits, leaves]) await engine.queue!.enqueue(one, now());
        await calm("an enqueue");
        assert.equal((await engine.queue!.heartbeat([waits], now()))[0]!.kind, "queued");
        await calm("a heartbeat");
        assert.equal((await engine.queue!.withdraw(leaves, now())).kind, "withdrawn");
        await calm("a withdrawal");
        const [renewed] = await engine.renew([{ ...held, ttlMs: 9_000 }], now());
        assert.equal(renewed!.kind, "renewed");
        await calm("a renewal");
        const sequence = { resource, mode: "exclusive", token: granted.token } as const;
        assert.equal(await engine.check(sequence, now()), true);
        await calm("a check");
        assert.equal((await engine.inspect(resource, now())).holders.length, 1);
        await calm("an inspection");
        await engine.list({ match: "*", cursor: null, max: 10 }, now());
        await calm("a list");
        const revoked = await other.revoke({ ...sequence, force: true }, now());
        assert.equal(revoked, "revoked");
        assert.equal(await engine.check(sequence, now()), false);
        assert.equal(await engine.revoke({ ...sequence, force: true }, now()), "gone");
        await calm("a revocation");
        assert.equal((await engine.queue!.heartbeat([waits], now()))[0]!.kind, "granted");
        const [released] = await engine.release([{ ...waits, tombstoneMs: 100 }], now());
        assert.equal(released!.kind, "released");
        await calm("a release");
      }
    });
  }

  it("a check sees a revocation that came after the previous check", async (server) => {
    const client = server.pool({ connectionLimit: 1 });
    client.pool.on("connection", (connection) => connection.query("SET SESSION autocommit = 0"));
    const [guard, other] = [server.engine({ client }), server.engine()];
    const granted = await other.tryAcquire(claim("guarded"), now());
    assert.ok(granted.kind === "granted");
    const sequence = { resource: "guarded", mode: "exclusive", token: granted.token } as const;
    assert.equal(await guard.check(sequence, now()), true);
    await other.revoke({ ...sequence, force: true }, now());
    assert.equal(await guard.check(sequence, now()), false);
  });

  it("a session with somebody's open transaction is refused, and not used again", async (server) => {
    const client = server.pool({ connectionLimit: 1 });
    client.pool.on("connection", (connection) => connection.query("SET SESSION autocommit = 0"));
    const engine = server.engine({ client });
    assert.equal((await engine.tryAcquire(claim("open"), now())).kind, "granted");
    await client.query("CREATE TABLE left_open (n INT)");
    await client.query("INSERT INTO left_open VALUES (1)");
    await assert.rejects(engine.tryAcquire(claim("open-2"), now()), (error: EngineError) => {
      return error.effect === "none" && /transaction still open/.test(error.message);
    });
    assert.equal((await engine.tryAcquire(claim("open-2"), now())).kind, "granted");
    const [rows] = await client.query("SELECT * FROM left_open");
    assert.deepEqual(rows, [], "a call of ours has committed what its user had not");
  });
});

async function state(client: mysql.Pool): Promise<Record<string, unknown>> {
  const [rows] = await client.query("SELECT CONNECTION_ID() AS id");
  // Inside a transaction the server refuses to change the isolation level.
  const inTransaction = await client.query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ").then(
    () => false,
    ({ errno }: { errno: number }) => errno === 1568,
  );
  return { ...(rows as { id: number }[])[0], inTransaction };
}
