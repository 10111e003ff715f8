// Claims that were given up, and that are refused if they still arrive.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { Engine, GrantRef } from "../../../../engine.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { describeWithServer } from "../support/test-server.fixture.js";

const GONE = "{holdfast:a}:gone";

describeWithServer("tombstones", (it) => {
  it("tombstones of other claims neither refuse a claim nor cost it more commands", async (redis) => {
    const engine = redis.engine();
    await leaveTombstone(engine, claim("a"), 60_000);
    await redis.admin.config("RESETSTAT");
    const next = claim("a");
    assert.equal((await engine.tryAcquire(next, now())).kind, "granted");
    const behind = claim("a");
    assert.equal((await engine.queue!.enqueue(behind, now())).kind, "queued");
    // The second part of the script would read the grant three times for each claim.
    assert.equal(await redis.calls("get"), 1);
    assert.equal(await redis.calls("zscore"), 2);
    assert.deepEqual(await redis.admin.zrange("{holdfast:a}:queue", "0", "-1"), [behind.grantId]);
  });

  it("a claim with a tombstone is refused, whoever holds and waits", async (redis) => {
    const engine = redis.engine();
    const late = claim("a");
    await leaveTombstone(engine, late, 60_000);
    const refused = async () => {
      const answers = [engine.tryAcquire(late, now()), engine.queue!.enqueue(late, now())];
      for (const answer of await Promise.all(answers)) {
        assert.deepEqual(answer, { kind: "gone", why: "unknown" });
      }
    };
    await refused();
    const holder = claim("a");
    await engine.tryAcquire(holder, now());
    await refused();
    await engine.queue!.enqueue(claim("a"), now());
    await refused();
    await redis.admin.del("holdfast:a");
    await refused();
  });

  it("a claim that arrives after its tombstone expired blocks for its ttl, no longer", async (redis) => {
    const relay = await redis.relay();
    const [sender, other] = [redis.engine({ port: relay.port }), redis.engine()];
    // Warms up the connection, so that the relay holds back the claim and not the client's first
    // commands.
    await sender.queue!.enqueue(claim("warm"), now());
    for (const verb of ["tryAcquire", "enqueue"] as const) {
      const late = claim("a", { ttlMs: 2_000 });
      relay.hold();
      const answer =
        verb === "tryAcquire" ? sender.tryAcquire(late, now()) : sender.queue!.enqueue(late, now());
      await leaveTombstone(other, late, 60_000);
      await redis.admin.zrem(GONE, late.grantId);
      relay.deliver();
      assert.equal((await answer).kind, "granted", `${verb}: it was refused`);
      const leftMs = await redis.admin.pttl("holdfast:a");
      assert.ok(leftMs > 0 && leftMs <= 2_000, `${verb}: it lives for ${leftMs} ms`);
      const next = claim("a");
      await until("the next one is granted", async () => {
        return (await other.tryAcquire(next, now())).kind === "granted";
      });
      await other.release([{ ...next, tombstoneMs: 0 }], now());
    }
  });

  it("each tombstone lasts as long as requested, whatever comes after it", async (redis) => {
    const engine = redis.engine();
    await leaveTombstone(engine, claim("a"), 60_000);
    await leaveTombstone(engine, claim("a"), 1_000);
    assert.ok((await redis.admin.pttl(GONE)) > 50_000);
    await leaveTombstone(engine, claim("a"), 90_000);
    assert.ok((await redis.admin.pttl(GONE)) > 80_000);
  });

  it("expired tombstones are removed, and nothing is left in the end", async (redis) => {
    const engine = redis.engine({ idleMs: 1_000 });
    // In one call, so at the same time of the server.
    const brief = Array.from({ length: 5 }, () => ({ ...claim("a"), tombstoneMs: 50 }));
    await engine.release([...brief, { ...claim("a"), tombstoneMs: 4_000 }], now());
    assert.equal(await redis.admin.zcard(GONE), 6);
    await sleep(80);
    const last = claim("a");
    await leaveTombstone(engine, last, 300);
    assert.equal(await redis.admin.zcard(GONE), 2);
    await until("nothing is left", async () => (await redis.admin.keys("*")).length === 0);
    assert.equal((await engine.tryAcquire(last, now())).kind, "granted");
  });
});

async function leaveTombstone(
  engine: Engine,
  { resource, grantId }: GrantRef,
  tombstoneMs: number,
) {
  const [answer] = await engine.release([{ resource, grantId, tombstoneMs }], now());
  assert.ok(answer!.kind === "gone");
}
