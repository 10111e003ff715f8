// A grant that its holder has left behind has no holder, and keeps others out for its time.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Call, Claim, Engine } from "../../../../engine.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { soon } from "../../../../test-support/soon.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { HoldingRelay } from "../support/holding-relay.fixture.js";
import { fresh, ZookeeperTestServer } from "../support/test-server.fixture.js";

let zookeeper: ZookeeperTestServer;

before(async () => {
  zookeeper = await ZookeeperTestServer.start();
});

after(() => zookeeper[Symbol.asyncDispose]());

async function take(engine: Engine, one: Claim): Promise<bigint> {
  const answer = await engine.tryAcquire(one, now());
  assert.equal(answer.kind, "granted");
  return answer.kind === "granted" ? answer.token : 0n;
}

async function leave(engine: Engine, one: Claim, ttlMs: number, call: Call = now()) {
  const [answer] = await engine.renew([{ ...one, ttlMs, leave: true }], call);
  return answer!;
}

const tryKind = async (engine: Engine, one: Claim) => (await engine.tryAcquire(one, now())).kind;

for (const hold of ["session", "ttl"] as const) {
  describe(`grants that were left behind, hold ${hold}`, { concurrency: 4 }, () => {
    const open = () => zookeeper.engine({ hold });

    it("a left grant whose time is over blocks nobody, even if nobody has observed it", async () => {
      const resource = fresh();
      const [holder, other] = [open(), open()];
      const token = await take(holder, claim(resource, { grantId: "a".repeat(32) }));
      await leave(holder, claim(resource, { grantId: "a".repeat(32) }), 1_000);
      await holder.close();
      await sleep(1_050);
      // Nobody must observe it for its time: the leader's clock says that it is over.
      const sequence = { resource, mode: "exclusive", token } as const;
      assert.equal(await open().check(sequence, now()), false);
      assert.deepEqual((await open().inspect(resource, now())).holders, []);
      assert.equal(await open().revoke({ resource, token, force: false }, now()), "gone");
      const listed = await open().list({ match: resource, cursor: null, max: 10 }, now());
      assert.deepEqual(listed.views, []);
      const answer = await other.tryAcquire(claim(resource), now());
      assert.ok(answer.kind === "granted" && answer.token > token);
    });

    it("a left grant lasts its whole time, and inspect shows its token", async () => {
      const resource = fresh();
      const [holder, other] = [open(), open()];
      const one = claim(resource, { label: "gone home", tokens: 3 });
      const token = await take(holder, one);
      const started = performance.now();
      await holder.renew([{ ...one, index: 1 }], now());
      const [left] = await holder.renew([{ ...one, ttlMs: 4_000, index: 2, leave: true }], now());
      assert.deepEqual(left?.kind === "renewed" && left.ttlMs, 4_000);
      await holder.close();
      const [view] = (await other.inspect(resource, now())).holders;
      assert.deepEqual([view?.token, view?.label], [token + 2n, "gone home"]);
      assert.ok(view!.remainingMs <= 4_000 && view!.remainingMs > 0, `${view!.remainingMs} ms`);
      assert.equal(await other.check({ resource, mode: "exclusive", token }, now()), true);
      assert.equal(await other.revoke({ resource, token, force: true }, now()), "gone");
      const next = claim(resource);
      await until("granted", async () => (await tryKind(other, next)) === "granted");
      assert.ok(performance.now() - started >= 4_000, "it was granted before the time was over");
    });

    it("a forced revocation ends a left grant, and a plain one does not", async () => {
      const resource = fresh();
      const [holder, other] = [open(), open()];
      const one = claim(resource);
      const token = await take(holder, one);
      await leave(holder, one, 60_000);
      assert.equal(await other.revoke({ resource, token, force: false }, now()), "revoked");
      assert.equal(await tryKind(other, claim(resource)), "busy");
      assert.equal(await other.revoke({ resource, token, force: true }, now()), "revoked");
      assert.equal(await tryKind(other, claim(resource)), "granted");
    });

    it("a release, a renewal and a repeated claim come too late for a left grant", async () => {
      const resource = fresh();
      const [holder, other] = [open(), open()];
      const one = claim(resource);
      await take(holder, one);
      await leave(holder, one, 60_000);
      for (const engine of [holder, other]) {
        const ref = [{ ...one, tombstoneMs: 1_000 }];
        assert.equal((await engine.release(ref, now()))[0]!.kind, "gone");
        assert.equal((await engine.renew([one], now()))[0]!.kind, "gone");
        assert.equal(await tryKind(engine, one), "gone");
        assert.equal((await leave(engine, one, 60_000)).kind, "renewed");
        assert.equal(await tryKind(engine, claim(resource)), "busy");
      }
    });

    it("a left shared grant keeps out exclusive claims, and counts against the limit", async () => {
      const resource = fresh();
      const [holder, other] = [open(), open()];
      const terms = { mode: "shared", limit: 2 } as const;
      const one = claim(resource, terms);
      await take(holder, one);
      await leave(holder, one, 4_000);
      await take(other, claim(resource, { ...terms, grantId: "b".repeat(32) }));
      assert.equal(await tryKind(other, claim(resource, terms)), "busy", "two hold");
      assert.equal(await tryKind(other, claim(resource)), "busy", "a writer waits");
      const third = claim(resource, terms);
      await until("the third", async () => (await tryKind(other, third)) === "granted");
    });

    it("a left grant with another limit blocks nobody once it is over", async () => {
      const resource = fresh();
      const [holder, other] = [open(), open()];
      const one = claim(resource, { mode: "shared", limit: 2 });
      await take(holder, one);
      await leave(holder, one, 1_000);
      await sleep(1_050);
      await take(other, claim(resource, { mode: "shared", limit: 3 }));
    });

    it("a lock-delay follows a left grant, as after any grant that was not released", async () => {
      const resource = fresh();
      const [holder, other] = [open(), open()];
      const one = claim(resource, { lockDelayMs: 800 });
      await take(holder, one);
      const started = performance.now();
      await leave(holder, one, 1_000);
      await holder.close();
      const next = claim(resource);
      await until("granted", async () => (await tryKind(other, next)) === "granted");
      const tookMs = performance.now() - started;
      assert.ok(tookMs >= 1_800, `granted after ${tookMs} ms`);
    });

    it("a repeated request finds the grant that an unanswered request left behind", async () => {
      const resource = fresh();
      await using relay = await HoldingRelay.start(zookeeper.server.port);
      const holder = zookeeper.engine({ hold, hosts: relay.hosts });
      const one = claim(resource, { ttlMs: 20_000 });
      await take(holder, one);
      await holder.renew([{ ...one, ttlMs: 20_000 }], now());
      relay.loseAnswerTo("write");
      // A read is sent again on the next connection, so the request may succeed after all.
      assert.match((await leave(holder, one, 30_000)).kind, /^(failed|renewed)$/);
      assert.equal(relay.lost, 1);
      const again = await leave(holder, one, 30_000);
      assert.ok(again.kind === "renewed" && again.ttlMs <= 30_000 && again.ttlMs > 20_000);
      await holder.close();
      assert.equal((await open().inspect(resource, now())).holders.length, 1);
    });

    it("once runs once, also for a client that comes later", async () => {
      const resource = fresh();
      const terms = { atMostMs: 60_000, atLeastMs: 5_000 };
      const ran = async () => {
        const locks = zookeeper.locks({ hold });
        const { ran: did } = await locks.once(resource, terms, () => {});
        await locks.close();
        return did;
      };
      assert.deepEqual([await ran(), await ran()], [true, false]);
      await sleep(5_100);
      assert.deepEqual([await ran(), await ran()], [true, false]);
    });
  });
}

describe("waiters behind grants that were left behind", { concurrency: 4 }, () => {
  it("the next waiter is granted when a left grant ends, and not when it is left", async () => {
    await soon(2_500, async () => {
      const resource = fresh();
      const [holder, waiting] = [zookeeper.engine(), zookeeper.engine()];
      const [one, waiter, last] = [claim(resource), claim(resource), claim(resource)];
      const pushed: string[] = [];
      waiting.queue!.onGrant(({ grantId }) => pushed.push(grantId));
      await take(holder, one);
      for (const behind of [waiter, last]) await waiting.queue!.enqueue(behind, now());
      await sleep(200);
      const started = performance.now();
      await leave(holder, one, 1_500);
      await holder.close();
      await until("the push has come", () => pushed.length > 0);
      const tookMs = performance.now() - started;
      assert.ok(tookMs >= 1_500, `granted after ${tookMs} ms`);
      assert.deepEqual(pushed, [waiter.grantId]);
      return tookMs;
    });
  });

  it("a late request to leave a grant keeps others out from its arrival on", async () => {
    const resource = fresh();
    const relay = await HoldingRelay.start(zookeeper.server.port);
    const [holder, other] = [zookeeper.engine({ hosts: relay.hosts }), zookeeper.engine()];
    const one = claim(resource, { ttlMs: 10_000 });
    await take(holder, one);
    await holder.renew([one], now());
    relay.holdNext("write");
    const leaving = leave(holder, one, 4_000, now(500));
    await until("the request is held back", () => relay.holds);
    await sleep(700);
    relay.deliver();
    const left = await leaving;
    assert.ok(left.kind === "renewed" && left.ttlMs === 4_000);
    assert.equal(await tryKind(other, claim(resource)), "busy");
    const next = claim(resource);
    await until("granted", async () => (await tryKind(other, next)) === "granted");
    await relay[Symbol.asyncDispose]();
  });

  it("a request to leave a grant whose session ended answers gone", async () => {
    const resource = fresh();
    const relay = await zookeeper.relay();
    const holder = zookeeper.engine({ hosts: `127.0.0.1:${relay.port}` });
    const other = zookeeper.engine();
    const one = claim(resource, { ttlMs: 1_000 });
    await take(holder, one);
    relay.cut();
    const next = claim(resource);
    await until("the session is over", async () => (await tryKind(other, next)) === "granted");
    relay.mend();
    assert.equal((await leave(holder, one, 60_000, now(10_000))).kind, "gone");
    assert.equal((await other.inspect(resource, now())).holders.length, 1);
  });
});
