// Renewals that come in another order than they were sent in, and leases passed on inside a
// process.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { HoldingRelay } from "../support/holding-relay.fixture.js";
import { fresh, ZookeeperTestServer } from "../support/test-server.fixture.js";

let zookeeper: ZookeeperTestServer;

before(async () => {
  zookeeper = await ZookeeperTestServer.start();
});

after(() => zookeeper[Symbol.asyncDispose]());

for (const hold of ["session", "ttl"] as const) {
  describe(`renewals, hold ${hold}`, { concurrency: 4 }, () => {
    it("a late copy of a shorter one does not end a grant early", async () => {
      const [engine, other] = [zookeeper.engine({ hold }), zookeeper.engine({ hold })];
      const one = claim(fresh(), { ttlMs: 10_000 });
      await engine.tryAcquire(one, now());
      const [early, late] = [now(), now()];
      await engine.renew([{ ...one, ttlMs: 10_000 }], late);
      const [answer] = await engine.renew([{ ...one, ttlMs: 1_000 }], early);
      assert.ok(answer?.kind === "renewed" && answer.ttlMs > 5_000, "what the later one gave");
      // The end of a grant that nobody renews is for this engine to bring about, or for observers.
      const end = performance.now() + 1_500;
      while (performance.now() < end) {
        assert.equal((await other.tryAcquire(claim(one.resource), now())).kind, "busy");
        await sleep(20);
      }
    });

    it("a late one promises no more than there is", async () => {
      const engine = zookeeper.engine({ hold });
      const one = claim(fresh(), { ttlMs: 10_000 });
      await engine.tryAcquire(one, now());
      const early = now();
      const shorter = now();
      await engine.renew([{ ...one, ttlMs: 2_000 }], shorter);
      await sleep(300);
      const late = { ...early, startedAt: now().startedAt };
      const [answer] = await engine.renew([{ ...one, ttlMs: 10_000 }], late);
      assert.ok(answer?.kind === "renewed");
      // What the shorter one gave ends 2 s after it was sent. A timer may fire early: the end is
      // compared, not what is left after the pause.
      const end = answer.since + answer.ttlMs;
      assert.ok(end <= shorter.startedAt + 2_001, JSON.stringify({ answer, shorter }));
    });

    it("a revocation that races with a hand-over does not hit the next holder", async () => {
      const [engine, other] = [zookeeper.engine({ hold }), zookeeper.engine({ hold })];
      for (let i = 0; i < 20; i++) {
        const resource = fresh();
        const one = claim(resource, { tokens: 3 });
        const granted = await engine.tryAcquire(one, now());
        const token = granted.kind === "granted" ? granted.token : 0n;
        await engine.renew([one], now());
        const [[renewed]] = await Promise.all([
          engine.renew([{ ...one, index: 1 }], now()),
          other.revoke({ resource, token, force: false }, now()),
        ]);
        // Whichever is first, the one to whom the lease was passed on is not revoked.
        assert.equal(renewed!.kind, "renewed");
        const [holder] = (await other.inspect(resource, now())).holders;
        assert.deepEqual([holder?.token, holder?.revoked], [token + 1n, false]);
        const [again] = await engine.renew([{ ...one, index: 1 }], now());
        assert.equal(again!.kind, "renewed");
      }
    });
  });
}

describe("renewals of one session", () => {
  it("a lease that was passed on is told once, and others cost nothing beside it", async () => {
    const engine = zookeeper.engine();
    const claims = Array.from({ length: 20 }, () => claim(fresh(), { tokens: 5, ttlMs: 20_000 }));
    const told: string[] = [];
    engine.watch!.onChange((resource) => told.push(resource));
    for (const one of claims) await engine.tryAcquire(one, now());
    const renew = async (index: number) => {
      const before = await zookeeper.server.metric("zk_packets_received");
      const refs = claims.map((one, i) => (i === 0 ? { ...one, index } : one));
      const answers = await engine.renew(refs, now());
      assert.ok(answers.every(({ kind }) => kind === "renewed"));
      return (await zookeeper.server.metric("zk_packets_received")) - before;
    };
    await renew(0);
    await sleep(200);
    told.length = 0;
    const plain = await renew(0);
    const passedOn = await renew(1);
    const again = await renew(1);
    // A sync for all; then the one node is written and watched anew. Keepalives come in between,
    // the more the busier the machine is. One request for each lease would be 20.
    assert.ok(plain <= 10, `${plain} requests`);
    assert.ok(passedOn <= 13, `${passedOn} requests`);
    assert.ok(again <= 10, `${again} requests`);
    assert.deepEqual(told, [], "what we write ourselves is no news");
  });

  it("an index that is written late does not hide a revocation of the later holder", async () => {
    const resource = fresh();
    const relay = await HoldingRelay.start(zookeeper.server.port);
    const [engine, other] = [zookeeper.engine({ hosts: relay.hosts }), zookeeper.engine()];
    const one = claim(resource, { tokens: 3 });
    const granted = await engine.tryAcquire(one, now());
    const token = granted.kind === "granted" ? granted.token : 0n;
    await engine.renew([one], now());
    relay.holdNext("write");
    const renewing = engine.renew([{ ...one, index: 1 }], now(20_000));
    await until("the index is held back", () => relay.holds);
    assert.equal(await other.revoke({ resource, token, force: false }, now()), "revoked");
    relay.letGo();
    assert.equal((await renewing)[0]!.kind, "renewed", "that was for the holder before");
    const later = { resource, token: token + 1n, force: false };
    assert.equal(await other.revoke(later, now()), "revoked");
    const [last] = await engine.renew([{ ...one, index: 1 }], now());
    assert.deepEqual(last, { kind: "gone", why: "revoked" });
    await relay[Symbol.asyncDispose]();
  });
});

it("with records, a late renewal that somebody else overtook promises nothing", async () => {
  const [engine, other] = [zookeeper.engine({ hold: "ttl" }), zookeeper.engine({ hold: "ttl" })];
  const one = claim(fresh(), { ttlMs: 10_000 });
  await engine.tryAcquire(one, now());
  const early = now();
  await other.renew([{ ...one, ttlMs: 10_000 }], now());
  // When that was written, only who wrote it knows.
  const [answer] = await engine.renew([{ ...one, ttlMs: 5_000 }], early);
  assert.ok(answer?.kind === "renewed" && answer.ttlMs === 0);
});

it("a forced revocation does not hit the one to whom the lease was passed on", async () => {
  for (const lockDelayMs of [0, 500]) {
    await using relay = await HoldingRelay.start(zookeeper.server.port);
    const [admin, other] = [zookeeper.engine({ hosts: relay.hosts }), zookeeper.engine()];
    const one = claim(fresh(), { tokens: 3, lockDelayMs });
    const granted = await other.tryAcquire(one, now());
    const token = granted.kind === "granted" ? granted.token : 0n;
    await admin.inspect(one.resource, now());
    relay.holdNext("removal");
    const revoking = admin.revoke({ resource: one.resource, token, force: true }, now());
    await until("it is under way", () => relay.holds);
    const passedOn = { ...one, ttlMs: 10_000, index: 1 };
    assert.equal((await other.renew([passedOn], now()))[0]!.kind, "renewed");
    relay.letGo();
    assert.equal(await revoking, "gone");
    assert.equal((await other.renew([passedOn], now()))[0]!.kind, "renewed");
    const inUse = { resource: one.resource, token: token + 1n, force: true };
    assert.equal(await admin.revoke(inUse, now()), "revoked");
  }
});
