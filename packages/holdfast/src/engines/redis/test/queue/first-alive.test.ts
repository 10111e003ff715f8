// The first live waiter of a queue, behind others that were killed, stopped or cut off.
import assert from "node:assert/strict";
import type { Relay } from "@holdfast/servers";
import type { Claim } from "../../../../engine.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { describeWithServer, type RedisTestServer } from "../support/test-server.fixture.js";

const WAITERS = "{holdfast:a}:waiters";
const TTL_MS = 900;
const LONG_MS = 60_000;
const HEARTBEAT_MS = 1_000;
const MISSED_MS = 2_100;

describeWithServer("the first live waiter", (it) => {
  it("asks when the holder's key ends, behind waiters whose process does not listen", async (redis) => {
    const { nextHeartbeatMs, next, last, before, relay } = await setUp(redis);
    assert.equal(await nextHeartbeatMs(next), HEARTBEAT_MS, "the waiters before it ask");
    await cutPushes(redis, relay, before);
    assert.ok((await nextHeartbeatMs(next)) <= TTL_MS, "it does not know that it comes first");
    assert.equal(await nextHeartbeatMs(last), HEARTBEAT_MS, "nor need the one behind it look");
  });

  it("asks when the holder's key ends, behind waiters that missed two heartbeats", async (redis) => {
    const { nextHeartbeatMs, next, last, before } = await setUp(redis);
    await ageHeartbeats(redis, before);
    assert.ok((await nextHeartbeatMs(next)) <= TTL_MS, "it does not know that it comes first");
    assert.equal(await nextHeartbeatMs(last), HEARTBEAT_MS, "nor need the one behind it look");
  });

  for (const how of ["releases", "dies"] as const) {
    it(`is granted before the waiters of a stopped process, when the holder ${how}`, async (redis) => {
      const { holder, ours, other, held, before, next, pushed } = await setUp(redis);
      await ageHeartbeats(redis, before);
      if (how === "dies") await redis.admin.del("holdfast:a");
      else await holder.release([held], now());
      if (how === "dies") await other.queue!.heartbeat([next], now());
      else await until("it is granted", () => pushed.includes(next.grantId));
      const [answer] = await other.queue!.heartbeat([next], now());
      assert.equal(answer?.kind, "granted");
      await other.release([{ ...next, tombstoneMs: 0 }], now());
      const [after] = await ours.queue!.heartbeat([before[0]], now());
      assert.notEqual(after?.kind, "unknown", "they lost their place");
    });
  }

  it("is the head, if no waiter has sent a heartbeat for a while", async (redis) => {
    const { holder, held, before, next, last, pushed } = await setUp(redis);
    await ageHeartbeats(redis, [...before, next, last]);
    await holder.release([held], now());
    await until("it is granted", () => pushed.length > 0);
    assert.deepEqual(pushed, [before[0].grantId]);
  });
});

/**
 * A holder, two waiters of a process whose pushes can be cut, and two of another process behind
 * them.
 */
async function setUp(redis: RedisTestServer) {
  const relay = await redis.relay();
  const [holder, ours, other] = [
    redis.engine(),
    redis.engine({ pushPort: relay.port }),
    redis.engine(),
  ];
  const held = { ...claim("a", { ttlMs: LONG_MS }), tombstoneMs: 0 };
  const before = [claim("a"), claim("a")] as const;
  const [next, last] = [claim("a"), claim("a")];
  await holder.tryAcquire(held, now());
  for (const waiter of before) await ours.queue!.enqueue(waiter, now());
  for (const waiter of [next, last]) await other.queue!.enqueue(waiter, now());
  const pushed: string[] = [];
  for (const engine of [ours, other]) {
    engine.queue!.onGrant(({ grantId }) => void pushed.push(grantId));
  }
  const nextHeartbeatMs = async (waiter: Claim) => {
    const renew = (ttlMs: number) => holder.renew([{ ...held, ttlMs }], now());
    assert.equal((await renew(TTL_MS))[0]?.kind, "renewed");
    const [answer] = await other.queue!.heartbeat([waiter], now());
    // The resource must still be held in what follows, on a busy machine too.
    await renew(LONG_MS);
    assert.ok(answer?.kind === "queued", `it is ${answer?.kind}`);
    return answer.nextHeartbeatMs;
  };
  return { holder, ours, other, held, before, next, last, relay, pushed, nextHeartbeatMs };
}

/** Makes the waiters late: they have missed two heartbeats. */
async function ageHeartbeats(redis: RedisTestServer, waiters: readonly Claim[]): Promise<void> {
  for (const { grantId } of waiters) {
    const record = (await redis.admin.hget(WAITERS, grantId)) ?? "";
    const aged = record.replace(/\b\d{13}\b/, (ms) => String(Number(ms) - MISSED_MS));
    assert.notEqual(aged, record, "the record has no time of a heartbeat");
    await redis.admin.hset(WAITERS, grantId, aged);
  }
}

/** Cuts the pushes of the waiters' process, as if it was killed. */
async function cutPushes(
  redis: RedisTestServer,
  relay: Relay,
  [waiter]: readonly Claim[],
): Promise<void> {
  const record = (await redis.admin.hget(WAITERS, waiter!.grantId)) ?? "";
  const channel = record.split(":")[8]!;
  const listeners = async () => (await redis.admin.pubsub("NUMSUB", channel))[1];
  assert.equal(await listeners(), 1);
  relay.cut();
  await until("nobody listens for them", async () => (await listeners()) === 0);
}
