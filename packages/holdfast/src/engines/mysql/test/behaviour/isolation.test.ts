// Users' transactions, in their isolation levels, block only those who want the same resource.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type mysql from "mysql2/promise";
import { FencedOutError } from "../../../../errors.js";
import type { Locks } from "../../../../locks.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { claimInTransaction, fenceInTransaction } from "../../index.js";
import { describeWithMysql } from "../support/test-server.fixture.js";

// SERIALIZABLE is left out: there every read locks, including internal reads of the server.
const LEVELS = ["READ COMMITTED", "REPEATABLE READ"];
// Names before, between and after those that the transactions use.
const OTHERS = ["a", "l", "l9", "m0", "m-", "m2", "ma", "n", "z", "zz"];

describeWithMysql({}, (it) => {
  for (const level of LEVELS) {
    it(`under ${level} a failed claim costs nobody a lease`, async (server) => {
      const [locks, user] = [server.locks(), await server.connection()];
      const names = ["m", "p1", "p2", "p3"].map((name) => `${name} ${level}`);
      const options = { ttlMs: 5_000, fair: "strict" } as const;
      const leases = await Promise.all(names.map((name) => locks.acquire(name, options)));
      await begin(user, level);
      assert.equal(await claimInTransaction(user, names[0]!), null);
      await sleep(7_000);
      for (const lease of leases) assert.equal(lease.held, true, `${lease.resource} was lost`);
      assert.equal(await leases[0]!.release(), "released");
      await user.query("ROLLBACK");
    });

    it(`under ${level} a fence blocks only its own resource`, async (server) => {
      const [locks, other, user] = [server.locks(), server.locks(), await server.connection()];
      const lease = await locks.acquire("m", { ttlMs: 60_000 });
      await begin(user, level);
      await fenceInTransaction(user, lease.sequencer);
      await free(other, `fence ${level}`);
      // The same lease can fence several transactions at a time, and others can wait for it.
      const second = await server.connection();
      await begin(second, level);
      await fenceInTransaction(second, lease.sequencer);
      await second.query("COMMIT");
      const waiter = claim("m");
      const engine = server.engine();
      assert.equal((await engine.queue!.enqueue(waiter, now())).kind, "queued");
      assert.equal((await engine.queue!.withdraw(waiter, now())).kind, "withdrawn");
      await lease.renew();
      await user.query("COMMIT");
      await lease.release();
    });

    it(`under ${level} a refused fence blocks nobody`, async (server) => {
      const [locks, other, user] = [server.locks(), server.locks(), await server.connection()];
      const before = await locks.acquire("m");
      await before.release();
      await begin(user, level);
      await assert.rejects(fenceInTransaction(user, before.sequencer), FencedOutError);
      await assert.rejects(fenceInTransaction(user, "exclusive:77:never-there"), FencedOutError);
      await free(other, `refusal ${level}`);
      await (await other.acquire("m")).release();
      await (await other.acquire("never-there")).release();
      await user.query("ROLLBACK");
    });

    it(`under ${level} a claim blocks only its own resource`, async (server) => {
      const [other, user] = [server.locks(), await server.connection()];
      await begin(user, level);
      assert.notEqual(await claimInTransaction(user, "m"), null);
      await free(other, `claim ${level}`);
      assert.equal(await other.tryAcquire("m"), null);
      await user.query("COMMIT");
      await (await other.acquire("m")).release();
    });

    it(`under ${level} a claim succeeds a holder whose time is over`, async (server) => {
      const [engine, other, user] = [server.engine(), server.locks(), await server.connection()];
      const name = `over ${level}`;
      const dead = await engine.tryAcquire(claim(name, { ttlMs: 300 }), now());
      assert.ok(dead.kind === "granted");
      await sleep(500);
      await begin(user, level);
      const taken = await claimInTransaction(user, name);
      assert.ok(taken !== null && taken.token > dead.token);
      await free(other, `over ${level}`);
      await user.query("COMMIT");
      const next = await other.acquire(name);
      assert.ok(next.token > taken.token);
      await next.release();
    });
  }

  it("a locked row costs only its own lease", async (server) => {
    const [locks, user] = [server.locks(), await server.connection()];
    const options = { ttlMs: 5_000, fair: "strict" } as const;
    const leases = await Promise.all(
      ["r", "s1", "s2", "s3"].map((name) => locks.acquire(name, options)),
    );
    await user.query("START TRANSACTION");
    await lockGrant(user, "r");
    await sleep(7_000);
    const held = leases.map((lease) => lease.held);
    await user.query("ROLLBACK");
    assert.deepEqual(held, [false, true, true, true]);
  });

  it("a lease whose row is briefly locked is renewed when the row is free", async (server) => {
    const [engine, user] = [server.engine(), await server.connection()];
    const [mine, beside] = [claim("t"), claim("t2")];
    for (const one of [mine, beside]) await engine.tryAcquire(one, now());
    // On a busy machine the lock may last longer than a renewal waits.
    const answers: string[] = [];
    for (let tries = 0; tries < 6 && answers.at(-1) !== "renewed renewed"; tries++) {
      await user.query("START TRANSACTION");
      await lockGrant(user, "t");
      const asked = engine.renew([{ ...mine }, { ...beside }], now());
      await sleep(60);
      await user.query("ROLLBACK");
      answers.push((await asked).map(({ kind }) => kind).join(" "));
    }
    assert.equal(answers.at(-1), "renewed renewed", answers.join("; "));
  });

  it("a transaction with an old snapshot does not see a taken resource as free", async (server) => {
    const [locks, user] = [server.locks(), await server.connection()];
    await (await locks.acquire("u")).release();
    await user.query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ");
    await user.query("START TRANSACTION WITH CONSISTENT SNAPSHOT");
    const lease = await locks.acquire("u", { ttlMs: 60_000 });
    assert.equal(await claimInTransaction(user, "u"), null, "somebody holds it");
    await user.query("ROLLBACK");
    await user.query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ");
    await user.query("START TRANSACTION WITH CONSISTENT SNAPSHOT");
    const waiting = server.locks().acquire("u", { fair: "strict" });
    await server.untilWaiters("u", 1);
    await lease.release();
    const next = await waiting;
    await assert.rejects(fenceInTransaction(user, lease.sequencer), FencedOutError);
    await fenceInTransaction(user, next.sequencer);
    await user.query("ROLLBACK");
  });

  it("a fence refuses the former holder of a revoked lease", async (server) => {
    const [engine, user] = [server.engine(), await server.connection()];
    const asked = claim("v", { tokens: 8 });
    const held = await engine.tryAcquire(asked, now());
    assert.ok(held.kind === "granted");
    const check = async (index: bigint) => {
      await user.query("START TRANSACTION");
      try {
        await fenceInTransaction(user, `exclusive:${held.token + index}:v`);
      } finally {
        await user.query("ROLLBACK");
      }
    };
    await check(0n);
    await engine.renew([{ ...asked, index: 1 }], now());
    await engine.revoke({ resource: "v", token: held.token + 1n, force: false }, now());
    await assert.rejects(check(1n), FencedOutError);
    // The revocation was meant for a holder that has passed its lease on.
    await engine.renew([{ ...asked, index: 2 }], now());
    await check(2n);
    await assert.rejects(check(1n), FencedOutError);
    await assert.rejects(check(8n), FencedOutError, "not one of its tokens");
  });
});

async function begin(user: mysql.PoolConnection, level: string): Promise<void> {
  await user.query(`SET TRANSACTION ISOLATION LEVEL ${level}`);
  await user.query("START TRANSACTION");
}

/** By its primary key: in a small table another search would lock all rows. */
async function lockGrant(user: mysql.PoolConnection, resource: string): Promise<void> {
  const grant = `SELECT HEX(grant_id) AS id FROM holdfast_grants WHERE resource = '${resource}'`;
  const [rows] = await user.query(grant);
  const { id } = (rows as { id: string }[])[0]!;
  await user.query(`SELECT * FROM holdfast_grants WHERE grant_id = X'${id}' FOR UPDATE`);
}

/** Each of these names can be acquired and released at once. */
async function free(locks: Locks, suffix: string): Promise<void> {
  for (const name of OTHERS) {
    for (const full of [name, `${name} ${suffix}`]) {
      const lease = await locks.tryAcquire(full, { ttlMs: 60_000 });
      assert.notEqual(lease, null, `"${full}" is blocked`);
      await lease!.release();
    }
  }
}
