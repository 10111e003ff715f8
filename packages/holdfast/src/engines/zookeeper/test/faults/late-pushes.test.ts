// A push of a grant that core knows already from an answer.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { HoldingRelay } from "../support/holding-relay.fixture.js";
import { fresh, ZookeeperTestServer } from "../support/test-server.fixture.js";

/** Longer than an unconfirmed pushed grant is kept. */
const UNCLAIMED_MS = 4_000;

let zookeeper: ZookeeperTestServer;

before(async () => {
  zookeeper = await ZookeeperTestServer.start();
});

after(() => zookeeper[Symbol.asyncDispose]());

test("a push after the heartbeat that granted does not shorten the grant", async () => {
  await using relay = await HoldingRelay.start(zookeeper.server.port);
  const [engine, other] = [zookeeper.engine({ hosts: relay.hosts }), zookeeper.engine()];
  const resource = fresh();
  // With a lock-delay a waiter must ask before it takes over, so the push comes late.
  const [holder, waiter] = [claim(resource), claim(resource, { lockDelayMs: 200 })];
  assert.equal((await other.tryAcquire(holder, now())).kind, "granted");
  assert.equal((await engine.queue!.enqueue(waiter, now())).kind, "queued");
  const pushed: string[] = [];
  engine.queue!.onGrant(({ grantId }) => pushed.push(grantId));
  // The heartbeat and the request of the waiter after the release arrive together.
  relay.holdNext("other");
  const heartbeat = engine.queue!.heartbeat([waiter], now());
  await until("the heartbeat is under way", () => relay.holds);
  await other.release([{ ...holder, tombstoneMs: 0 }], now());
  await sleep(200);
  relay.deliver();
  const [answer] = await heartbeat;
  assert.equal(answer!.kind, "granted");
  await sleep(UNCLAIMED_MS);
  const next = await other.tryAcquire(claim(resource), now());
  assert.equal(next.kind, "busy", "the grant lasts for ten seconds");
  const [renewed] = await engine.renew([{ ...waiter, ttlMs: 10_000 }], now());
  assert.equal(renewed!.kind, "renewed");
  assert.ok(pushed.length <= 1);
});
