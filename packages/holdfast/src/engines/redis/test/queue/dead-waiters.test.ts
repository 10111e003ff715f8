// Queued waiters whose processes died without withdrawing.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { Engine } from "../../../../engine.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { describeWithServer, type RedisTestServer } from "../support/test-server.fixture.js";

const SILENT_MS = 11_000;

describeWithServer("dead waiters", (it) => {
  it("dead waiters behind a live head are removed by the waiters behind them", async (redis) => {
    const engine = redis.engine();
    await engine.tryAcquire(claim("a"), now());
    const [head, dead, last] = await enqueueMany(engine, 3);
    await ageHeartbeats(redis, "a", [dead!.grantId]);
    assert.equal(
      (await engine.inspect("a", now())).waiters.length,
      2,
      "inspect shows dead waiters",
    );
    await engine.queue!.heartbeat([head!, last!], now());
    await engine.queue!.heartbeat([last!], now());
    assert.equal(await redis.admin.zcard("{holdfast:a}:queue"), 2);
    assert.equal(await redis.admin.hlen("{holdfast:a}:waiters"), 2);
  });

  it("a dead head is removed, and its later heartbeat is unknown", async (redis) => {
    const engine = redis.engine();
    const holder = claim("a");
    await engine.tryAcquire(holder, now());
    const [dead, next] = await enqueueMany(engine, 2);
    await ageHeartbeats(redis, "a", [dead!.grantId]);
    await engine.release([{ ...holder, tombstoneMs: 0 }], now());
    const [answer] = await engine.queue!.heartbeat([next!], now());
    assert.equal(answer?.kind, "granted");
    const [late] = await engine.queue!.heartbeat([dead!], now());
    assert.equal(late?.kind, "unknown");
  });

  it("the limit of a dead waiter does not bind other claims", async (redis) => {
    const engine = redis.engine();
    await engine.tryAcquire(claim("a"), now());
    const dead = claim("a", { mode: "shared", limit: 2 });
    await engine.queue!.enqueue(dead, now());
    const other = claim("a", { mode: "shared", limit: 3 });
    await assert.rejects(engine.queue!.enqueue(other, now()), /limit/);
    await ageHeartbeats(redis, "a", [dead.grantId]);
    assert.equal((await engine.queue!.enqueue(other, now())).kind, "queued");
  });

  it("a waiter that joins a queue of dead waiters just before its expiry stays", async (redis) => {
    const engine = redis.engine();
    await engine.tryAcquire(claim("a"), now());
    await enqueueMany(engine, 1);
    for (const key of ["queue", "waiters"]) await redis.admin.pexpire(`{holdfast:a}:${key}`, 200);
    const [late] = await enqueueMany(engine, 1);
    await sleep(300);
    const [answer] = await engine.queue!.heartbeat([late!], now());
    assert.equal(answer?.kind, "queued");
  });

  it("a queue without heartbeats leaves nothing behind", async (redis) => {
    const engine = redis.engine({ idleMs: 1_000 });
    await engine.tryAcquire(claim("a", { ttlMs: 200 }), now());
    await enqueueMany(engine, 3);
    for (const key of ["queue", "waiters"]) {
      const left = await redis.admin.pttl(`{holdfast:a}:${key}`);
      assert.ok(left > 15_000 && left <= 20_000, `${key} is kept for ${left} ms`);
      await redis.admin.pexpire(`{holdfast:a}:${key}`, 300);
    }
    await until("nothing is left", async () => (await redis.admin.dbsize()) === 0, 10_000);
  });
});

async function enqueueMany(engine: Engine, count: number) {
  const waiters = Array.from({ length: count }, () => claim("a"));
  for (const waiter of waiters) await engine.queue!.enqueue(waiter, now());
  return waiters;
}

/** Makes the last heartbeat of these waiters older: sets back the first time in their records. */
async function ageHeartbeats(
  redis: RedisTestServer,
  resource: string,
  grantIds: readonly string[],
) {
  const key = `{holdfast:${resource}}:waiters`;
  for (const id of grantIds) {
    const record = (await redis.admin.hget(key, id)) ?? "";
    const aged = record.replace(/\b\d{13}\b/, (ms) => String(Number(ms) - SILENT_MS));
    assert.notEqual(aged, record, "the record holds an instant in milliseconds");
    await redis.admin.hset(key, id, aged);
  }
}
