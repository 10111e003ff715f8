// What waiting and holding cost the server, by the calls that it counts.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { Lease } from "../../../../core/holding/lease.js";
import { until } from "../../../../test-support/until.fixture.js";
import {
  CLIENT_NAMES,
  describeWithServer,
  type RedisTestServer,
} from "../support/test-server.fixture.js";

// The server also counts the commands inside scripts. These are the ones that clients send.
const SENT = /cmdstat_(eval|evalsha|scan|ping|subscribe|client\S*|publish|hello|info):calls=(\d+)/g;
const WINDOWS = 3;

describeWithServer("load", (it) => {
  it("10,000 leases are renewed with at most 20 commands a second, and none is lost", async (redis) => {
    await using locks = redis.locks();
    const leases: Lease[] = [];
    for (let i = 0; i < 10_000; i += 1_000) {
      const some = Array.from({ length: 1_000 }, (_, j) =>
        locks.acquire(`r${i + j}`, { ttlMs: 10_000, callTimeoutMs: 10_000 }),
      );
      leases.push(...(await Promise.all(some)));
    }
    await sleep(1_000);
    // Renewals come every third of the ttl, so this counts a whole round.
    const perSecond = await commandsPerSecond(redis, 4_000);
    assert.ok(perSecond <= 20, `${perSecond} commands a second`);
    assert.ok(perSecond > 0, "nothing was renewed");
    assert.ok(leases.every((lease) => lease.held && lease.remainingMs() > 3_000));
  });

  for (const client of CLIENT_NAMES) {
    for (const fair of ["strict", "cohort"] as const) {
      it(`500 waiters behind one holder send at most 5 commands a second (${fair}, ${client})`, async (redis) => {
        await using ours = redis.locks({ client });
        await using other = redis.locks();
        const held = await other.acquire("a");
        const order: number[] = [];
        const waits = Array.from({ length: 500 }, async (_, i) => {
          const lease = await ours.acquire("a", { fair, waitMs: 120_000 });
          order.push(i);
          await lease.release();
        });
        await redis.untilWaiters(other, "a", fair === "strict" ? 500 : 1);
        // If an assertion fails, the waits end with their connection. Those errors are not the
        // cause.
        for (const wait of waits) wait.catch(() => {});
        await isAtMost(5, redis, 2_000);
        const started = performance.now();
        await held.release();
        await Promise.all(waits);
        const tookMs = performance.now() - started;
        assert.ok(tookMs < 100_000, `all were served after ${tookMs} ms`);
        assert.deepEqual(
          order,
          order.map((_, i) => i),
        );
      });
    }

    it(`500 waiters on 500 resources send at most 5 commands a second (${client})`, async (redis) => {
      await using ours = redis.locks({ client });
      await using other = redis.locks();
      const names = Array.from({ length: 500 }, (_, i) => `r${i}`);
      const held = await Promise.all(names.map((name) => other.acquire(name, { ttlMs: 60_000 })));
      const waits = names.map((name) => ours.acquire(name, { waitMs: 120_000 }));
      await until("all wait", async () => (await redis.admin.keys("*:queue")).length === 500);
      for (const wait of waits) wait.catch(() => {});
      await isAtMost(5, redis, 2_000);
      await Promise.all(held.map((lease) => lease.release()));
      const leases = await Promise.all(waits);
      await Promise.all(leases.map((lease) => lease.release()));
    });
  }
});

/** A busy machine splits a round of heartbeats into several. Then the measurement is repeated. */
async function isAtMost(most: number, redis: RedisTestServer, overMs: number): Promise<void> {
  const rates: number[] = [];
  for (let i = 0; i < WINDOWS; i++) {
    const rate = await commandsPerSecond(redis, overMs);
    if (rate <= most) return;
    rates.push(Math.round(rate));
  }
  assert.fail(`${rates.join(", ")} commands a second`);
}

async function commandsPerSecond(redis: RedisTestServer, overMs: number): Promise<number> {
  // The calls that are in progress now belong to what came before.
  await sleep(100);
  const before = await sent(redis);
  const started = performance.now();
  await sleep(overMs);
  const after = await sent(redis);
  // The count includes our own call.
  return ((after - before - 1) * 1_000) / (performance.now() - started);
}

async function sent(redis: RedisTestServer): Promise<number> {
  const stats = await redis.admin.info("commandstats");
  return [...stats.matchAll(SENT)].reduce((sum, [, , calls]) => sum + Number(calls), 0);
}
