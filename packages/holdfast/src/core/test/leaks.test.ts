import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { queryObjects } from "node:v8";
import { MemoryStore, memoryEngine } from "../../engines/memory/index.js";
import { Locks } from "../../locks.js";
import type { AcquireOptions } from "../../options.js";
import { ManualClock } from "../../testing/index.js";
import { PendingClaim } from "../acquiring/pending-claim.js";
import { SentClaim } from "../acquiring/sent-claim.js";
import { Cohort } from "../cohort/cohort.js";
import { Grant } from "../holding/grant.js";
import { HeldLease } from "../holding/lease.js";

const KINDS = { Cohort, Grant, HeldLease, PendingClaim, SentClaim };

function setUp() {
  const clock = new ManualClock();
  const store = new MemoryStore();
  const locks = new Locks(memoryEngine({ store }), { clock });
  const other = new Locks(memoryEngine({ store }), { clock });
  return { clock, store, locks, other };
}

const WAYS: Record<string, AcquireOptions> = {
  cohort: {},
  strict: { fair: "strict" },
  shared: { mode: "shared" },
};

for (const [way, options] of Object.entries(WAYS)) {
  test(`a thousand aborted waits leave no waiter, timer or listener (${way})`, async () => {
    const { clock, store, locks, other } = setUp();
    await other.acquire("a", { ttlMs: 3_600_000, renew: false });
    await clock.advance(0);
    const timers = clock.timers;
    for (let round = 0; round < 10; round++) {
      const controller = new AbortController();
      const { signal } = controller;
      const waits = Array.from({ length: 100 }, () =>
        locks.acquire("a", { ...options, signal }).catch(() => {}),
      );
      await clock.advance(10);
      assert.ok(store.resources.get("a")!.queue.length > 0);
      controller.abort();
      await Promise.all(waits);
      await clock.advance(0);
      assert.equal(getEventListeners(signal, "abort").length, 0);
    }
    assert.equal(store.resources.get("a")!.queue.length, 0);
    assert.equal(clock.timers, timers);
  });

  test(`a thousand waits that time out leave nothing on a long-lived signal (${way})`, async () => {
    const { clock, store, locks, other } = setUp();
    await other.acquire("a", { ttlMs: 3_600_000, renew: false });
    await clock.advance(0);
    const { signal } = new AbortController();
    const timers = clock.timers;
    const waits = Array.from({ length: 1_000 }, () =>
      locks.acquire("a", { ...options, signal, waitMs: 50 }).catch(() => {}),
    );
    await clock.advance(50);
    await Promise.all(waits);
    waits.length = 0;
    await clock.advance(0);
    assert.equal(getEventListeners(signal, "abort").length, 0);
    assert.equal(store.resources.get("a")!.queue.length, 0);
    assert.equal(clock.timers, timers);
  });

  test(`a thousand leases on a thousand names leave nothing once released (${way})`, async () => {
    const { clock, store, locks } = setUp();
    for (let i = 0; i < 1_000; i++) await (await locks.acquire(`r${i}`, options)).release();
    await clock.advance(0);
    assert.equal(clock.timers, 0);
    assert.equal(store.resources.size, 0);
  });

  test(`a thousand lost leases leave nothing, released or not (${way})`, async () => {
    const { clock, locks } = setUp();
    for (let i = 0; i < 1_000; i++) {
      const lease = await locks.acquire(`r${i}`, { ...options, ttlMs: 1_000, maxHoldMs: 100 });
      clock.pause(200);
      if (i % 2 === 0) await lease.release();
    }
    await clock.advance(5_000);
    assert.equal(clock.timers, 0);
  });
}

test("the waits and leases above leave no object of the core in memory", () => {
  // V8 collects garbage before it counts. It may keep a handful of objects a moment longer.
  for (const [name, kind] of Object.entries(KINDS)) {
    const left = queryObjects(kind as unknown as new () => object, { format: "count" });
    assert.ok(left < 50, `${left} of ${name}`);
  }
});
