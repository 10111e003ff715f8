// What waiting and holding cost the servers, by the servers' own counters.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { soon } from "../../../../test-support/soon.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { keepMany } from "../support/many-leases.fixture.js";
import { fresh, ZookeeperTestServer } from "../support/test-server.fixture.js";

let zookeeper: ZookeeperTestServer;

before(async () => {
  zookeeper = await ZookeeperTestServer.start();
});

after(() => zookeeper[Symbol.asyncDispose]());

test("one release behind 200 exclusive waiters makes one watch fire", async () => {
  const resource = fresh();
  const [holder, waiters] = [zookeeper.engine(), zookeeper.engine()];
  const held = claim(resource, { ttlMs: 60_000 });
  await holder.tryAcquire(held, now());
  const pushed: string[] = [];
  waiters.queue!.onGrant(({ grantId }) => pushed.push(grantId));
  const queue = Array.from({ length: 200 }, () => claim(resource, { ttlMs: 30_000 }));
  const answers = [];
  for (const [i, one] of queue.entries()) {
    answers.push(await waiters.queue!.enqueue(one, now()));
    // On a busy machine this takes longer than waiters without heartbeats are kept.
    if (i % 25 === 24) await waiters.queue!.heartbeat(queue.slice(0, i + 1), now());
  }
  assert.ok(answers.every(({ kind }) => kind === "queued"));
  // One for each waiter, and one of the holder on its own node. The next waiter also watches its own
  // node, which the second waiter watches in the same session.
  await until("all watch", async () => (await zookeeper.server.metric("zk_watch_count")) === 201);
  const fired = () => zookeeper.server.metric("zk_sum_node_deleted_watch_count");
  const before = await fired();
  await holder.release([{ ...held, tombstoneMs: 0 }], now());
  await until("the first push has come", () => pushed.length === 1);
  await sleep(200);
  assert.deepEqual(pushed, [queue[0]!.grantId]);
  assert.equal((await fired()) - before, 1);
});

test("a waiter with limit 2 is woken when either of the two holders leaves", async () => {
  for (const leaver of [0, 1]) {
    await soon(2_900, async () => {
      const resource = fresh();
      const engine = zookeeper.engine();
      const terms = { mode: "shared", limit: 2 } as const;
      const permits = Array.from({ length: 4 }, () => claim(resource, terms));
      const pushed: string[] = [];
      engine.queue!.onGrant(({ grantId }) => pushed.push(grantId));
      for (const permit of permits) await engine.queue!.enqueue(permit, now());
      await engine.release([{ ...permits[leaver]!, tombstoneMs: 0 }], now());
      const thirdMs = await until("the third claim is granted", () => pushed.length === 1);
      await engine.release([{ ...permits[2]!, tombstoneMs: 0 }], now());
      const fourthMs = await until("the fourth claim is granted", () => pushed.length === 2);
      assert.deepEqual(pushed, [permits[2]!.grantId, permits[3]!.grantId]);
      return Math.max(thirdMs, fourthMs);
    });
  }
});

test("an aborted wait leaves no watch behind", async () => {
  const resource = fresh();
  const [holder, locks] = [zookeeper.locks(), zookeeper.locks()];
  const before = await zookeeper.server.metric("zk_watch_count");
  const lease = await holder.acquire(resource, { renew: false });
  const controller = new AbortController();
  const options = { signal: controller.signal, fair: "strict" } as const;
  const waits = Array.from({ length: 20 }, () =>
    locks.acquire(resource, options).catch(() => null),
  );
  await zookeeper.untilWaiters(holder, resource, 20);
  controller.abort();
  await Promise.all(waits);
  await zookeeper.untilWaiters(holder, resource, 0);
  const left = async () => (await zookeeper.server.metric("zk_watch_count")) - before;
  // The holder's own node is watched, for revocations.
  await until("no watch but the holder's is left", async () => (await left()) <= 1);
  await lease.release();
});

test("a waiter whose predecessor withdraws moves on, leaves no watch behind, and hears of its revocation", async () => {
  // A server of its own, because the server counts the watches of all clients.
  await using own = await ZookeeperTestServer.start();
  const resource = fresh();
  const [holder, second, third] = [own.locks(), own.locks(), own.locks()];
  const before = await own.server.metric("zk_watch_count");
  const watches = async () => (await own.server.metric("zk_watch_count")) - before;
  const lease = await holder.acquire(resource, { renew: false });
  const controller = new AbortController();
  const given = second.acquire(resource, { signal: controller.signal }).catch(() => null);
  await own.untilWaiters(holder, resource, 1);
  const waiting = third.acquire(resource, { waitMs: 60_000, ttlMs: 90_000 });
  await own.untilWaiters(holder, resource, 2);
  controller.abort();
  assert.equal(await given, null);
  // The watch of the holder on its own node, and those of the waiter on the holder and on its own
  // node.
  await until("three watches are left", async () => (await watches()) === 3);
  await sleep(200);
  assert.equal(await watches(), 3);
  await lease.release();
  const next = await waiting;
  await until("its own node is watched", async () => (await watches()) === 1);
  await holder.revoke(resource, { token: next.token });
  await until(
    "its loss is reported long before its next renewal",
    () => next.signal.aborted,
    20_000,
  );
});

// The long test has ten thousand.
test("1,000 leases of one process are kept by a handful of requests a second", async () => {
  await using own = await ZookeeperTestServer.start();
  await keepMany(own, 1_000);
});
