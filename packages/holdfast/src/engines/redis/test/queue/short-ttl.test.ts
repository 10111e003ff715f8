// Waiters whose ttl is shorter than the time between their heartbeats. A pushed grant is valid from
// the last heartbeat, so it is already over when it arrives.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { Lease } from "../../../../core/holding/lease.js";
import { truth } from "../support/record.fixture.js";
import { CLIENT_NAMES, describeWithServer } from "../support/test-server.fixture.js";

// After the enqueue: longer than the short ttl, and before the first heartbeat.
const BETWEEN_HEARTBEATS_MS = 600;
const [SHORT_MS, LONG_MS] = [300, 10_000];

describeWithServer("a ttl shorter than a heartbeat", (it) => {
  for (const client of CLIENT_NAMES) {
    for (const mode of ["exclusive", "shared"] as const) {
      it(`does not cost a waiter its place (${mode}, ${client})`, async (redis) => {
        const terms = mode === "shared" ? { mode, limit: 1 } : { mode };
        const watcher = redis.locks();
        const held = await watcher.acquire("a", terms);
        const order: number[] = [];
        const waits: Promise<void>[] = [];
        for (let i = 0; i < 6; i++) {
          const ttlMs = i % 2 === 0 ? SHORT_MS : LONG_MS;
          const waiting = redis.locks({ client }).acquire("a", { ...terms, ttlMs, waitMs: 60_000 });
          const serve = async (lease: Lease) => {
            order.push(i);
            const [kept] = await truth(redis.admin, "a");
            assert.ok(
              lease.remainingMs() <= (kept?.remainingMs ?? 0),
              "the lease is valid for longer than its key",
            );
            await lease.release();
          };
          waits.push(waiting.then(serve));
          await redis.untilWaiters(watcher, "a", i + 1);
        }
        await sleep(BETWEEN_HEARTBEATS_MS);
        await held.release();
        await Promise.all(waits);
        assert.deepEqual(order, [0, 1, 2, 3, 4, 5]);
      });
    }
  }
});
