// What a lock inside a transaction of the user's must do, on whichever database.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { TransactionClaim } from "../../engine-kit/sql/transaction.js";
import { memoryEngine } from "../../engines/memory/index.js";
import { FencedOutError, UsageError } from "../../errors.js";
import { Locks } from "../../locks.js";

/** A connection of the user. */
export interface UserSession {
  query(text: string): Promise<unknown>;
  fence(sequencer: string): Promise<void>;
  claim(resource: string, options?: { waitMs?: number }): Promise<TransactionClaim | null>;
}

export interface TransactionServer {
  locks(): Locks;
  session(): Promise<UserSession>;
  count(table: string, where?: string): Promise<number>;
  untilWaiters(resource: string, count: number): Promise<void>;
  /** Passes a pool instead of a connection. */
  claimFromPool(resource: string): Promise<unknown>;
}

export type TransactionIt = (
  title: string,
  part: (server: TransactionServer) => Promise<void>,
) => void;

export function testFences(it: TransactionIt): void {
  it("a valid fence lets the transaction commit, and renewals continue", async (server) => {
    const [locks, session] = [server.locks(), await server.session()];
    const lease = await locks.acquire("a", { ttlMs: 5_000 });
    await session.query("BEGIN");
    await session.fence(lease.sequencer);
    await lease.renew();
    await sleep(6_000);
    assert.equal(lease.held, true, "the keeper was kept from renewing");
    await session.query("COMMIT");
    assert.equal(await lease.release(), "released");
  });

  it("a grant that expires during a fenced transaction has no successor before its end", async (server) => {
    const [locks, other, session] = [server.locks(), server.locks(), await server.session()];
    const lease = await locks.acquire("b", { ttlMs: 3_000, renew: false });
    await session.query("BEGIN");
    await session.fence(lease.sequencer);
    const waiting = other.acquire("b");
    while (lease.held) await sleep(20);
    await sleep(200);
    assert.equal(await other.tryAcquire("b"), null, "somebody was let in beside the transaction");
    await session.query("COMMIT");
    const next = await waiting;
    assert.ok(next.token > lease.token);
    await session.query("BEGIN");
    await assert.rejects(session.fence(lease.sequencer), FencedOutError);
    await session.query("ROLLBACK");
    await next.release();
    await session.query("BEGIN");
    await assert.rejects(session.fence(next.sequencer), FencedOutError, "the lease was released");
    await session.query("ROLLBACK");
  });

  it("a release before the commit is refused, with the advice to commit first", async (server) => {
    const [locks, session] = [server.locks(), await server.session()];
    const lease = await locks.acquire("early", { callTimeoutMs: 1_500 });
    await session.query("BEGIN");
    await session.fence(lease.sequencer);
    await assert.rejects(
      lease.release(),
      /another transaction has locked this resource and does not end; if it is yours, end it first/,
    );
    await session.query("COMMIT");
  });

  it("a fence refuses a lease of another engine, and says that its lock is not here", async (server) => {
    const session = await server.session();
    await using elsewhere = new Locks(memoryEngine());
    await using lease = await elsewhere.acquire("c");
    await session.query("BEGIN");
    await assert.rejects(session.fence(lease.sequencer), (error) => {
      assert.ok(error instanceof FencedOutError);
      assert.match(
        error.message,
        /no live grant of (schema|tables) "holdfast.*" has token \d+ of "c"/,
      );
      assert.match(error.message, /or the lock is kept elsewhere.*docs\/fencing\.md/);
      return true;
    });
    await session.query("ROLLBACK");
  });
}

export function testClaims(it: TransactionIt): void {
  it("a claim excludes everybody until its transaction ends, and commits with the data", async (server) => {
    const [locks, session, second] = [
      server.locks(),
      await server.session(),
      await server.session(),
    ];
    await session.query("CREATE TABLE claimed_data (token bigint)");
    const before = await locks.acquire("d");
    await session.query("BEGIN");
    assert.equal(await session.claim("d"), null, "somebody holds it");
    await session.query("ROLLBACK");
    await before.release();
    await session.query("BEGIN");
    const claim = await session.claim("d");
    assert.ok(claim !== null && claim.token > before.token);
    await session.query(`INSERT INTO claimed_data VALUES (${claim.token})`);
    assert.equal(await locks.tryAcquire("d"), null);
    await second.query("BEGIN");
    assert.equal(await second.claim("d", { waitMs: 50 }), null);
    await second.query("ROLLBACK");
    const waiting = locks.acquire("d");
    await sleep(100);
    await session.query("COMMIT");
    const lease = await waiting;
    assert.ok(lease.token > claim.token);
    await lease.release();
    assert.equal(await server.count("grants", "resource = 'd'"), 0, "nothing is left of it");
  });

  it("a rollback releases the resource and undoes the data", async (server) => {
    const [locks, session] = [server.locks(), await server.session()];
    await session.query("CREATE TABLE undone_data (token bigint)");
    await session.query("BEGIN");
    const claim = await session.claim("g");
    assert.ok(claim !== null);
    await session.query(`INSERT INTO undone_data VALUES (${claim.token})`);
    await session.query("ROLLBACK");
    assert.notEqual(await locks.tryAcquire("g"), null);
    await session.query("BEGIN");
    assert.equal(await session.claim("g"), null);
    await session.query("ROLLBACK");
  });

  it("a claim does not overtake a waiter", async (server) => {
    const [locks, other, session] = [server.locks(), server.locks(), await server.session()];
    const held = await locks.acquire("e");
    const waiting = other.acquire("e", { waitMs: 60_000 });
    await server.untilWaiters("e", 1);
    await session.query("BEGIN");
    assert.equal(await session.claim("e"), null);
    await session.query("ROLLBACK");
    await held.release();
    await (await waiting).release();
  });

  it("claims and fences are refused without a transaction", async (server) => {
    const session = await server.session();
    await assert.rejects(session.fence("exclusive:1:f"), UsageError);
    await assert.rejects(session.claim("f"), UsageError);
    await assert.rejects(server.claimFromPool("f"), UsageError);
  });
}
