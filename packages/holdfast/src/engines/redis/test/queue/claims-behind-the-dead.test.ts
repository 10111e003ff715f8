// A claim that does not wait, behind waiters that cannot be promoted.
import assert from "node:assert/strict";
import type { Claim } from "../../../../engine.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { silence } from "../support/record.fixture.js";
import { describeWithServer, type RedisTestServer } from "../support/test-server.fixture.js";

const WAITERS = "{holdfast:a}:waiters";

const KINDS: Record<string, Partial<Claim>> = {
  exclusive: {},
  "shared, limit 1": { mode: "shared", limit: 1 },
};

describeWithServer("a claim that does not wait", (it) => {
  for (const [kind, terms] of Object.entries(KINDS)) {
    it(`is granted a free resource although a dead waiter is queued (${kind})`, async (redis) => {
      const { other, held, relay } = await setUp(redis, terms);
      relay.cut();
      await until("nobody listens for the dead waiter", async () => (await listeners(redis)) === 1);
      await other.release([{ ...held, tombstoneMs: 0 }], now());
      const next = claim("a", terms);
      assert.equal((await other.tryAcquire(next, now())).kind, "granted");
      // The dead waiter keeps its place, and blocks nobody.
      await other.release([{ ...next, tombstoneMs: 0 }], now());
      assert.equal((await other.tryAcquire(claim("a", terms), now())).kind, "granted");
    });

    it(`does not overtake a waiter whose process listens (${kind})`, async (redis) => {
      const { ours, other, held, waiter } = await setUp(redis, terms);
      const pushed: string[] = [];
      ours.queue!.onGrant(({ grantId }) => void pushed.push(grantId));
      // The waiter is late, as after a pause of its process. Nobody else waits, so it is promoted.
      await silence(redis.admin, "a", 3_000);
      await redis.admin.del("holdfast:a");
      assert.equal((await other.tryAcquire(claim("a", terms), now())).kind, "busy");
      await until("the waiter is granted", () => pushed.includes(waiter.grantId));
      assert.equal((await other.renew([{ ...held, ttlMs: 1_000 }], now()))[0]?.kind, "gone");
    });
  }

  it("leaves a turn to a live waiter that gets no pushes", async (redis) => {
    const { ours, other, held, waiter, relay } = await setUp(redis, {}, true);
    relay.cut();
    await until("nobody listens for it", async () => (await listeners(redis)) === 1);
    await other.release([{ ...held, tombstoneMs: 0 }], now());
    const overtaking = claim("a");
    assert.equal((await other.tryAcquire(overtaking, now())).kind, "granted");
    // It was passed over for long enough, and has just sent a heartbeat.
    await silence(redis.admin, "a", 4_000);
    const record = (await redis.admin.hget(WAITERS, waiter.grantId)) ?? "";
    const since = record.replace(/:(\d{13}):\d{13}:/, (_, heard) => `:${Date.now()}:${heard}:`);
    assert.notEqual(since, record, "it is remembered that it was passed over");
    await redis.admin.hset(WAITERS, waiter.grantId, since);
    await other.release([{ ...overtaking, tombstoneMs: 0 }], now());
    assert.equal((await other.tryAcquire(claim("a"), now())).kind, "busy");
    const [answer] = await ours.queue!.heartbeat([waiter], now());
    assert.equal(answer?.kind, "granted");
  });
});

/**
 * A holder, and a waiter of another process. With deafOnly the relay cuts only the waiter's pushes.
 */
async function setUp(redis: RedisTestServer, terms: Partial<Claim>, deafOnly = false) {
  const relay = await redis.relay();
  const ours = redis.engine(deafOnly ? { pushPort: relay.port } : { port: relay.port });
  const other = redis.engine();
  const [held, waiter] = [claim("a", terms), claim("a", terms)];
  await other.tryAcquire(held, now());
  await ours.queue!.enqueue(waiter, now());
  await until("both listen", async () => (await listeners(redis)) === 2);
  return { ours, other, held, waiter, relay };
}

async function listeners(redis: RedisTestServer): Promise<number> {
  return ((await redis.admin.pubsub("CHANNELS", "holdfast.push.*")) as string[]).length;
}
