// Sessions that reach the engine inside somebody else's transaction.
import assert from "node:assert/strict";
import type pg from "pg";
import type { Engine } from "../../../../engine.js";
import type { EngineError } from "../../../../errors.js";
import { Locks } from "../../../../locks.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { postgresEngine } from "../../index.js";
import { describeWithPostgres } from "../support/test-server.fixture.js";

describeWithPostgres({}, (it) => {
  for (const begin of ["BEGIN", "BEGIN ISOLATION LEVEL SERIALIZABLE", "BEGIN; SELECT no_such()"]) {
    it(`a grant made after "${begin}" on a pool session outlives its rollback`, async (server) => {
      const pool = server.pool({ max: 1 });
      const [ours, other] = [engineOn(pool), server.engine()];
      const resource = `a ${begin}`;
      await leaveOpen(pool, begin);
      const held = claim(resource);
      const granted = await ours.tryAcquire(held, now());
      assert.equal(granted.kind, "granted", "it is taken on a session of its own");
      await pool.query("ROLLBACK");
      assert.equal((await other.tryAcquire(claim(resource), now())).kind, "busy");
      await ours.release([{ ...held, tombstoneMs: 0 }], now());
    });
  }

  it("no call is carried out in somebody else's transaction", async (server) => {
    const pool = server.pool({ max: 1 });
    const [ours, other] = [engineOn(pool), server.engine()];
    const [held, waits, given] = [claim("b"), claim("b"), claim("b2")];
    const { token } = await granted(ours, held);
    await granted(ours, given);
    const sequence = { resource: "b", mode: "exclusive", token } as const;
    await leaveOpen(pool);
    const [renewed] = await ours.renew([{ ...held, ttlMs: 90_000 }], now());
    assert.equal(renewed?.kind, "renewed");
    await undo(pool);
    const [holder] = (await other.inspect("b", now())).holders;
    assert.ok((holder?.remainingMs ?? 0) > 60_000, "the renewal was undone");
    await leaveOpen(pool);
    assert.equal((await ours.queue!.enqueue(waits, now())).kind, "queued");
    await undo(pool);
    assert.equal(
      (await other.inspect("b", now())).waiters.length,
      1,
      "the place in the queue was undone",
    );
    await leaveOpen(pool);
    const [released] = await ours.release([{ ...given, tombstoneMs: 0 }], now());
    assert.equal(released?.kind, "released");
    await undo(pool);
    assert.equal((await other.inspect("b2", now())).holders.length, 0, "the release was undone");
    await leaveOpen(pool);
    assert.equal(await ours.revoke({ ...sequence, force: true }, now()), "revoked");
    await undo(pool);
    assert.equal(await other.check(sequence, now()), false, "the revocation was undone");
    await leaveOpen(pool);
    assert.equal((await ours.queue!.heartbeat([waits], now()))[0]?.kind, "granted");
    await undo(pool);
    assert.equal((await other.inspect("b", now())).holders.length, 1, "the grant was undone");
  });

  it("a check in an old transaction does not answer from its snapshot", async (server) => {
    const pool = server.pool({ max: 1 });
    const [ours, other] = [engineOn(pool), server.engine()];
    const { token } = await granted(other, claim("c"));
    const sequence = { resource: "c", mode: "exclusive", token } as const;
    await leaveOpen(pool, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM pg_class");
    await other.revoke({ ...sequence, force: true }, now());
    assert.equal(await ours.check(sequence, now()), false);
  });

  it("a revocation of a session lock does not join an open transaction", async (server) => {
    const pool = server.pool({ max: 1 });
    const ours = postgresEngine({ client: pool, listen: false, hold: "advisory" });
    const holder = server.engine({ listen: false, hold: "advisory" });
    const { token } = await granted(holder, claim("c2"));
    const sequence = { resource: "c2", mode: "exclusive", token } as const;
    assert.equal(await ours.check(sequence, now()), true);
    await leaveOpen(pool);
    assert.equal(await ours.revoke({ ...sequence, force: false }, now()), "revoked");
    await undo(pool);
    assert.equal(await holder.check(sequence, now()), false, "the revocation was undone");
    await ours.close();
  });

  it("a client inside its user's transaction is refused, and the transaction is not affected", async (server) => {
    const client = await server.client();
    const [ours, other] = [engineOn(client), server.engine()];
    const held = claim("d", { ttlMs: 60_000 });
    await granted(ours, held);
    await client.query("CREATE TABLE mine (n int)");
    await client.query("BEGIN");
    await client.query("INSERT INTO mine VALUES (1)");
    const isRefused = (error: EngineError) =>
      error.effect === "none" && error.retryable && /transaction/.test(error.message);
    await assert.rejects(ours.renew([{ ...held, ttlMs: 90_000 }], now()), isRefused);
    await assert.rejects(ours.tryAcquire(claim("d2"), now()), isRefused);
    await client.query("COMMIT");
    assert.equal((await client.query("SELECT FROM mine")).rowCount, 1, "the user's work is kept");
    assert.equal((await other.tryAcquire(claim("d2"), now())).kind, "granted");
    const [renewed] = await ours.renew([{ ...held, ttlMs: 90_000 }], now());
    assert.equal(renewed?.kind, "renewed");
    // Sent before the client can know of the transaction, so the server refuses it.
    const begun = client.query("BEGIN");
    await assert.rejects(ours.tryAcquire(claim("d3"), now()), isRefused);
    await begun;
    await client.query("ROLLBACK");
    assert.equal((await other.tryAcquire(claim("d3"), now())).kind, "granted");
  });

  it("a lease on a client is lost in time when a transaction keeps it from renewing", async (server) => {
    const client = await server.client();
    await using locks = new Locks(engineOn(client));
    const other = server.locks();
    const lease = await locks.acquire("e", { ttlMs: 1_500 });
    await client.query("BEGIN");
    const next = await other.acquire("e", { waitMs: 20_000 });
    assert.equal(lease.held, false, "held beside its successor");
    await client.query("ROLLBACK");
    assert.equal(lease.held, false);
    await next.release();
  });
});

function engineOn(client: pg.Pool | pg.Client): Engine {
  return postgresEngine({ client, listen: false });
}

async function granted(engine: Engine, one: ReturnType<typeof claim>) {
  const answer = await engine.tryAcquire(one, now());
  assert.ok(answer.kind === "granted");
  return answer;
}

/** Like code that forgets to end its transaction before it returns the session. */
async function leaveOpen(pool: pg.Pool, begin = "BEGIN"): Promise<void> {
  const session = await pool.connect();
  await session.query(begin).catch(() => {});
  session.release();
}

/** Like code that rolls back when it borrows a session. */
async function undo(pool: pg.Pool): Promise<void> {
  await pool.query("ROLLBACK");
}
