import assert from "node:assert";
import { systemClock } from "../../core/runtime/clock.js";
import { flakyEngine } from "../../testing/flaky-engine.js";
import type { LawGroup } from "../harness.js";
import { law } from "../law.js";
import type { LawContext } from "../law-context.js";
import { elapse, within } from "../timing.js";
import { overheard } from "./overheard.js";

/** The delay that a busy machine may add. */
const MARGIN_MS = 5_000;

/**
 * Locks whose queued answers are recorded, with the heartbeat interval that the engine asks for.
 */
async function countedLocks(s: LawContext, pushes: "deliver" | "drop") {
  const { engine, queued } = overheard(await s.engine());
  const flaky = flakyEngine(engine);
  flaky.pushes(pushes);
  return { locks: s.locksOn(flaky), queued };
}

/** The time from the release until the waiter has its lease. */
async function handOverMs(s: LawContext, pushes: "deliver" | "drop") {
  const holder = await s.client();
  // Engines that wait for an expiry ask for heartbeats near it. A busy machine can lose a short
  // grant in any engine.
  for (const wantedMs of [600, 3_000, 12_000]) {
    const { locks, queued } = await countedLocks(s, pushes);
    const resource = s.resource();
    const held = await holder.take(resource, { ttlMs: s.ttl(wantedMs) });
    const acquiring = locks.acquire(resource, { waitMs: 40_000, fair: "strict" });
    acquiring.catch(() => {});
    const isOver = async () => (await holder.inspect(resource)).waiters.length === 0;
    await Promise.race([s.untilWaiters(locks, resource, 1), acquiring]);
    await elapse(30);
    const releasedAt = systemClock.now();
    const { kind } = await holder.release(held.claim);
    if (kind !== "released" && (await isOver())) {
      await locks.close();
      continue;
    }
    assert.equal(kind, "released", "the release of a live grant");
    assert(queued.length > 0, "the waiter stood in the queue");
    const intervalMs = queued[0]!.nextHeartbeatMs;
    await within(intervalMs * 2 + MARGIN_MS, acquiring, "a waiter whose turn it is");
    const tookMs = systemClock.now() - releasedAt;
    await locks.close();
    return { tookMs, intervalMs };
  }
  return assert.fail("every grant ended before its release, no matter how long its ttl");
}

export const wake: LawGroup = {
  id: "L14",
  name: "wake-ups",
  text:
    "A waiter learns of its turn promptly, and a waiter whose wake-up is lost still gets its turn by " +
    "its heartbeat. An expiry, which pushes nothing, is found by heartbeat too.",
  laws: [
    law(
      "L14.1",
      "a release wakes the next waiter long before its heartbeat",
      ["queue"],
      async (s) => {
        // The best of six counts: one slow round on a busy machine proves nothing.
        let best = Infinity;
        let bound = 0;
        for (let i = 0; i < 6 && best > bound; i++) {
          const { tookMs, intervalMs } = await handOverMs(s, "deliver");
          bound = Math.max(300, intervalMs / 2);
          best = Math.min(best, tookMs);
        }
        assert(best <= bound, `the hand-over took ${best.toFixed(0)} ms, and ${bound} is plenty`);
      },
    ),

    law(
      "L14.2",
      "a waiter whose wake-up is lost gets its turn by its heartbeat",
      ["queue"],
      async (s) => {
        const { tookMs, intervalMs } = await handOverMs(s, "drop");
        const boundMs = intervalMs * 1.5 + MARGIN_MS;
        assert(
          tookMs <= boundMs,
          `it took ${tookMs.toFixed(0)} ms, with ${intervalMs} between beats`,
        );
      },
    ),

    law("L14.3", "a waiter gets its turn soon after its predecessor expired", [], async (s) => {
      const [a, locks] = [await s.client(), await s.locks()];
      const resource = s.resource();
      const ttlMs = s.ttl(300);
      const { granted } = await a.take(resource, { ttlMs });
      if (s.traits.expiry === "session") await s.harness.sever?.(a.engine);
      const lease = await locks.acquire(resource, { waitMs: ttlMs + 10_000 });
      const lateMs = systemClock.now() - (granted.since + granted.ttlMs);
      assert(lateMs >= 0, "not before its end");
      assert(lateMs < ttlMs + MARGIN_MS, `${lateMs.toFixed(0)} ms after the holder's end`);
      assert.equal(lease.held, true);
    }),

    law(
      "L14.4",
      "a push that comes after the waiter already has its grant harms nobody",
      ["queue"],
      async (s) => {
        const { locks, flaky } = await s.flakyLocks();
        const holder = await s.client();
        const resource = s.resource();
        const held = await holder.take(resource, { ttlMs: s.ttl(5_000) });
        let late = () => {};
        flaky.pushes(
          new Promise<void>((resolve) => {
            late = resolve;
          }),
        );
        const acquiring = locks.acquire(resource, { waitMs: 40_000, fair: "strict" });
        await s.untilWaiters(locks, resource, 1);
        await holder.releaseHeld(held.claim);
        const lease = await within(40_000, acquiring, "a waiter without its push");
        assert.equal(await lease.release(), "released");
        late();
        await elapse(10);
        await s.untilEmpty(holder, resource);
        const next = await locks.tryAcquire(resource);
        assert(next !== null && next.token > lease.token);
      },
    ),

    law(
      "L14.5",
      "a push that comes after its grant expired makes no lease",
      ["queue", "age"],
      async (s) => {
        const { locks, flaky } = await s.flakyLocks();
        const [holder, other] = await s.clients(2);
        const resource = s.resource();
        const held = await holder!.take(resource);
        let late = () => {};
        flaky.pushes(
          new Promise<void>((resolve) => {
            late = resolve;
          }),
        );
        flaky.inject("heartbeat", { kind: "fail" }, 1_000);
        const ttlMs = s.ttl(400);
        const acquiring = locks.acquire(resource, { ttlMs, waitMs: 10_000, fair: "strict" });
        acquiring.catch(() => {});
        await s.untilWaiters(locks, resource, 1);
        await holder!.releaseHeld(held.claim);
        await elapse(ttlMs * 1.3);
        const live = await other!.take(resource);
        late();
        await elapse(50);
        await other!.holdersAre(resource, live.token);
        assert.equal(await other!.check(resource, live.token), true);
        await locks.close();
        await assert.rejects(acquiring);
      },
    ),

    law("L14.6", "every one of many waiters is woken, one release at a time", [], async (s) => {
      const all = [await s.locks(), await s.locks()];
      const resource = s.resource();
      const lease = await all[0]!.acquire(resource);
      let served = 0;
      const works = Array.from({ length: 20 }, (_, i) =>
        all[i % 2]!.run(resource, { waitMs: 40_000, fair: i % 4 < 2 ? "strict" : "cohort" }, () => {
          served++;
        }),
      );
      await elapse(30);
      await lease.release();
      await within(40_000, Promise.all(works), "all waiters");
      assert.equal(served, 20);
    }),

    law(
      "L14.7",
      "a waiter that leaves does not stop its neighbour's wake-up",
      ["queue"],
      async (s) => {
        const [holder, locks] = [await s.client(), await s.locks()];
        const resource = s.resource();
        const held = await holder.take(resource);
        const controller = new AbortController();
        const options = { fair: "strict", waitMs: 40_000 } as const;
        const leaving = locks.acquire(resource, { ...options, signal: controller.signal });
        leaving.catch(() => {});
        await s.untilWaiters(locks, resource, 1);
        const staying = locks.acquire(resource, options);
        await s.untilWaiters(locks, resource, 2);
        controller.abort();
        await s.untilWaiters(locks, resource, 1);
        await holder.releaseHeld(held.claim);
        const lease = await within(2_000 + MARGIN_MS, staying, "the neighbour of one that left");
        assert.equal(lease.held, true);
      },
    ),

    law(
      "L14.8",
      "a waiter that was cut off gets its turn once it is reconnected",
      ["sever"],
      async (s) => {
        const holder = await s.client();
        const { engine, locks } = await s.severable();
        const resource = s.resource();
        const held = await holder.take(resource, { ttlMs: s.ttl(8_000) });
        const retry = Array<number>(1_000).fill(20);
        const options = { waitMs: 50_000, callTimeoutMs: 500, retry } as const;
        const acquiring = locks.acquire(resource, { ...options, fair: "strict" });
        acquiring.catch(() => {});
        await s.untilWaiters(locks, resource, 1);
        const heal = await s.harness.sever!(engine);
        await elapse(50);
        await holder.releaseHeld(held.claim);
        // Long enough that at least one heartbeat is due while it is cut off.
        await elapse(2_100);
        await heal();
        const lease = await within(40_000, acquiring, "a waiter that was cut off");
        assert.equal(lease.held, true);
        await holder.holdersAre(resource, lease.token);
        assert.equal(await lease.release(), "released");
        await s.untilEmpty(holder, resource);
      },
    ),

    law(
      "L14.9",
      "a waiter may act inside the callback of its grant, and the effect lasts",
      ["queue"],
      async (s) => {
        const [holder, waiter, other] = await s.clients(3);
        const resource = s.resource();
        const held = await holder!.take(resource);
        const first = await waiter!.wait(resource);
        const again = waiter!.claim(resource);
        // Both at once: on separate connections they may arrive in the other order.
        const act = () => Promise.all([waiter!.release(first), waiter!.enqueue(again)]);
        let acting: ReturnType<typeof act> | undefined;
        const stopListening = waiter!.queue.onGrant(({ grantId }) => {
          if (grantId !== first.grantId) return;
          acting ??= act();
          acting.catch(() => {});
        });
        await holder!.releaseHeld(held.claim);
        for (let i = 0; i < 50 && acting === undefined; i++) await elapse(10);
        stopListening();
        // Not every backend pushes, and a push may be lost.
        if (acting === undefined) await waiter!.untilGranted(first);
        await (acting ?? act());
        const next = await waiter!.untilGranted(again);
        await other!.refused(resource);
        await other!.holdersAre(resource, next.token);
      },
    ),
  ],
};
