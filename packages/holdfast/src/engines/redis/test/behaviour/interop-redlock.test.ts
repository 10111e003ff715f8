// With one server, node-redlock uses the same key for a lock as we do with an empty prefix.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
// @ts-expect-error its package.json hides its types
import * as redlock from "redlock";
import type { Locks } from "../../../../locks.js";
import { until } from "../../../../test-support/until.fixture.js";
import {
  CLIENT_NAMES,
  type ClientName,
  describeWithServer,
  type RedisTestServer,
} from "../support/test-server.fixture.js";

const TTL_MS = 10_000;

/** The part of node-redlock that these tests use. */
interface Lock {
  release(): Promise<unknown>;
  extend(ttlMs: number): Promise<Lock>;
}
interface Redlock {
  acquire(names: string[], ttlMs: number): Promise<Lock>;
}
type RedlockModule = { default: new (clients: unknown[], settings: object) => Redlock };

describeWithServer("node-redlock", (it) => {
  type TestBody = (locks: Locks, other: Redlock, redis: RedisTestServer) => Promise<void>;

  const itWith = (what: string, body: TestBody, clients: readonly ClientName[] = CLIENT_NAMES) => {
    for (const client of clients) {
      it(`${what} (${client})`, async (redis) => {
        const { default: Redlock } = redlock as unknown as RedlockModule;
        // One try: the tests only ask whether the lock is free now.
        const other = new Redlock([redis.ioRedis()], { retryCount: 0, driftFactor: 0 });
        await body(redis.locks({ client, prefix: "" }), other, redis);
      });
    }
  };

  itWith("excludes us until it is released, and we are next", async (locks, other, redis) => {
    const lock = await other.acquire(["a"], TTL_MS);
    assert.equal(await locks.tryAcquire("a"), null);
    assert.equal(await locks.tryAcquire("a", { mode: "shared" }), null);
    const waiting = locks.acquire("a");
    await redis.untilWaiters(locks, "a", 1);
    const extended = await lock.extend(TTL_MS);
    assert.equal(await locks.tryAcquire("a"), null);
    await extended.release();
    await waiting;
    assert.equal(await isFree(other), false);
  });

  itWith("is excluded by us until we release", async (locks, other) => {
    const lease = await locks.acquire("a");
    assert.equal(await isFree(other), false);
    assert.equal(await lease.release(), "released");
    assert.equal(await isFree(other), true);
  });

  itWith("loses an expired lock to us, and cannot release ours", async (locks, other) => {
    const lock = await other.acquire(["a"], 300);
    const lease = await locks.acquire("a");
    await assert.rejects(lock.release());
    await assert.rejects(lock.extend(TTL_MS));
    await lease.renew();
    assert.ok(lease.held);
  });

  itWith("gets a lock that we let expire, and we cannot release it", async (locks, other) => {
    const lease = await locks.acquire("a", { ttlMs: 300, renew: false });
    let lock: Lock | null = null;
    const taken = async () => {
      lock = await other.acquire(["a"], TTL_MS).catch(() => null);
      return lock !== null;
    };
    await until("it expires", taken);
    assert.equal(lease.held, false);
    assert.equal(await lease.release(), "gone");
    assert.equal(await locks.tryAcquire("a"), null);
    await lock!.release();
    assert.ok(await locks.tryAcquire("a"));
  });

  itWith(
    "is excluded by each of our readers and by our lock-delay",
    async (locks, other) => {
      const readers = [0, 1].map(() => locks.acquire("a", { mode: "shared" }));
      for (const reader of await Promise.all(readers)) {
        assert.equal(await isFree(other), false);
        await reader.release();
      }
      assert.equal(await isFree(other), true);
      await locks.acquire("a", { ttlMs: 200, lockDelayMs: 4_000, renew: false });
      await sleep(400);
      assert.equal(await isFree(other), false, "the delay was over too soon");
      await until("the delay is over", () => isFree(other));
    },
    ["ioredis"],
  );
});

/** Whether the lock is free: acquires and releases it. */
async function isFree(other: Redlock): Promise<boolean> {
  const lock = await other.acquire(["a"], TTL_MS).catch(() => null);
  await lock?.release();
  return lock !== null;
}
