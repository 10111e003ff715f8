// What waiting costs the server, by the server's own counters.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { startEtcd } from "@holdfast/servers";
import type { Lease } from "../../../../core/holding/lease.js";
import { until } from "../../../../test-support/until.fixture.js";
import { EtcdTestServer } from "../support/test-server.fixture.js";

for (const [processes, each] of [
  [1, 200],
  [40, 1],
] as const) {
  test(`a release wakes one of ${processes} × ${each} waiters, by one event`, async () => {
    await using server = await startEtcd();
    await using etcd = new EtcdTestServer(server);
    const holder = etcd.locks();
    const lease = await holder.acquire("a");
    const controller = new AbortController();
    const options = { fair: "strict", waitMs: 60_000, signal: controller.signal } as const;
    const granted: Lease[] = [];
    const waits = Array.from({ length: processes }, () => etcd.locks()).flatMap((locks) =>
      Array.from({ length: each }, () =>
        locks.acquire("a", options).then((one) => granted.push(one)),
      ),
    );
    for (const wait of waits) wait.catch(() => {});
    await etcd.untilWaiters(holder, "a", processes * each);
    await sleep(300);
    const events = () => etcd.metric(/^etcd_debugging_mvcc_events_total /);
    const before = [await events(), await etcd.calls("Txn")];
    await lease.release();
    await until("one is granted", () => granted.length > 0);
    const asked = (await etcd.calls("Txn")) - before[1]!;
    await sleep(300);
    assert.equal(granted.length, 1, "exactly one waiter woke");
    // On a busy machine leases get old and are replaced, and a process hears of its own canaries.
    const heard = (await events()) - before[0]!;
    assert.ok(heard >= 1 && heard <= 4, `${heard} events, and one watch must report the release`);
    // The release, what the waiter asked, and heartbeats that fall into this moment.
    assert.ok(asked <= 5 + processes, `${asked} transactions`);
    controller.abort();
    await Promise.allSettled(waits);
    await granted[0]!.release();
  });
}
