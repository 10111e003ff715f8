// Renewals that arrive in another order, and leases that are handed over inside a process.
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
    it("a late copy of a shorter renewal does not end a grant early", async () => {
      const [engine, other] = [zookeeper.engine({ hold }), zookeeper.engine({ hold })];
      const one = claim(fresh(), { ttlMs: 10_000 });
      await engine.tryAcquire(one, now());
      const [early, late] = [now(), now()];
      await engine.renew([{ ...one, ttlMs: 10_000 }], late);
      const [answer] = await engine.renew([{ ...one, ttlMs: 1_000 }], early);
      assert.ok(
        answer?.kind === "renewed" && answer.ttlMs > 5_000,
        "the time of the later renewal",
      );
      // This engine, or an observer, would end a grant that nobody renews.
      const end = performance.now() + 1_500;
      while (performance.now() < end) {
        assert.equal((await other.tryAcquire(claim(one.resource), now())).kind, "busy");
        await sleep(20);
      }
    });

    it("the answer to a late renewal promises no more than what remains", async () => {
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
      // The shorter renewal ends 2 s after it was sent. A timer may fire early, so the ends are
      // compared, and not the remaining times.
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
        // In either order, the holder that the lease was handed to is not revoked.
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
  it("the index of a handed-over lease is written once, and other leases need no request", async () => {
    const engine = zookeeper.engine();
    const claims = Array.from({ length: 20 }, () => claim(fresh(), { tokens: 5, ttlMs: 20_000 }));
    const changes: string[] = [];
    engine.watch!.onChange((resource) => changes.push(resource));
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
    changes.length = 0;
    const plain = await renew(0);
    const passedOn = await renew(1);
    const again = await renew(1);
    // One request for the session, one write and one new watch. Keepalives come in between, more on
    // a busy machine. One request for each lease would be 20.
    assert.ok(plain <= 10, `${plain} requests`);
    assert.ok(passedOn <= 13, `${passedOn} requests`);
    assert.ok(again <= 10, `${again} requests`);
    assert.deepEqual(changes, [], "own writes are not reported");
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
    relay.deliver();
    assert.equal((await renewing)[0]!.kind, "renewed", "the revocation was for the holder before");
    const later = { resource, token: token + 1n, force: false };
    assert.equal(await other.revoke(later, now()), "revoked");
    const [last] = await engine.renew([{ ...one, index: 1 }], now());
    assert.deepEqual(last, { kind: "gone", why: "revoked" });
    await relay[Symbol.asyncDispose]();
  });
});

it("a late renewal of a record promises nothing, if another process renewed it later", async () => {
  const [engine, other] = [zookeeper.engine({ hold: "ttl" }), zookeeper.engine({ hold: "ttl" })];
  const one = claim(fresh(), { ttlMs: 10_000 });
  await engine.tryAcquire(one, now());
  const early = now();
  await other.renew([{ ...one, ttlMs: 10_000 }], now());
  // Only the process that wrote the later renewal knows when it was written.
  const [answer] = await engine.renew([{ ...one, ttlMs: 5_000 }], early);
  assert.ok(answer?.kind === "renewed" && answer.ttlMs === 0);
});

it("a late forced revocation does not end a grant that was handed over since", async () => {
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
    relay.deliver();
    assert.equal(await revoking, "gone");
    assert.equal((await other.renew([passedOn], now()))[0]!.kind, "renewed");
    const inUse = { resource: one.resource, token: token + 1n, force: true };
    assert.equal(await admin.revoke(inUse, now()), "revoked");
  }
});
