// Claims that are released or forgotten, before they were sent and after.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { startEtcd } from "@holdfast/servers";
import type { Claim } from "../../../engine.js";
import { now } from "../../../test-support/call.fixture.js";
import { claim as claimOf } from "../../../test-support/claim.fixture.js";
import { until } from "../../../test-support/until.fixture.js";
import { deletionOf, HoldingRelay, putOf } from "../test/support/holding-relay.fixture.js";
import { EtcdTestServer } from "../test/support/test-server.fixture.js";

const TTL_MS = 4_000;
/** A waiter without heartbeats is deleted after three seconds. */
const FORGOTTEN_MS = 3_000;

const claim = (resource: string, more: Partial<Claim> = {}) =>
  claimOf(resource, { ttlMs: TTL_MS, ...more });

describe("cancelled claims of etcd", { concurrency: 4 }, () => {
  for (const verb of ["tryAcquire", "enqueue"] as const) {
    it(`a release is not swallowed by a repeated ${verb} that was not sent yet`, async () => {
      await using server = await startEtcd();
      await using etcd = new EtcdTestServer(server);
      const [relay] = await etcd.relays();
      const engine = etcd.engine({ endpoints: [`127.0.0.1:${relay!.port}`] });
      const keys = () => etcd.ctl("get", "--prefix", "--keys-only", "holdfast/first/");
      const neighbour = claim("other");
      assert.equal((await engine.tryAcquire(neighbour, now())).kind, "granted");
      // The lease of waiters exists already, too.
      assert.equal((await engine.queue!.enqueue(claim("other"), now())).kind, "queued");
      const one = claim("first");
      const ask = (timeoutMs: number) =>
        verb === "enqueue"
          ? engine.queue!.enqueue(one, now(timeoutMs))
          : engine.tryAcquire(one, now(timeoutMs));
      relay!.mute();
      const first = ask(1_000).catch(() => "failed");
      await until("the claim has arrived", async () => (await keys()) !== "");
      relay!.cut();
      assert.equal(await first, "failed");
      // Its lease is not fresh any more, so the repeat needs a keepalive first, which cannot
      // arrive.
      await sleep(TTL_MS / 2);
      const second = ask(3_000).catch(() => "failed");
      await sleep(100);
      const released = engine.release([{ ...one, tombstoneMs: 60_000 }], now(500));
      assert.notEqual((await released)[0]!.kind, "gone", "no server answered the release");
      relay!.mend();
      await second;
      await until("the key was deleted", async () => {
        await engine.renew([{ ...neighbour, ttlMs: TTL_MS }], now());
        return (await keys()) === "";
      });
    });
  }

  for (const asks of [false, true]) {
    const how = asks ? "a push" : "a heartbeat";
    it(`a late deletion of a forgotten waiter does not end its grant by ${how}`, async () => {
      await using server = await startEtcd();
      await using relay = await new HoldingRelay(server.port).start();
      await using etcd = new EtcdTestServer(server);
      const [engine, other] = [etcd.engine({ endpoints: [relay.endpoint] }), etcd.engine()];
      const ttlMs = 30_000;
      const [holder, waiter] = [claim("first", { ttlMs }), claim("first", { ttlMs })];
      await other.tryAcquire(holder, now());
      assert.equal((await engine.queue!.enqueue(waiter, now())).kind, "queued");
      let pushes = 0;
      engine.queue!.onGrant(() => pushes++);
      // The lease lives on without it, because another waiter of the process is on it.
      const neighbour = claim("other", { ttlMs });
      await other.tryAcquire(claim("other", { ttlMs }), now());
      await engine.queue!.enqueue(neighbour, now());
      relay.holdRequests(deletionOf("holdfast/first/"));
      const started = performance.now();
      while (relay.held === 0) {
        assert.ok(performance.now() - started < 10 * FORGOTTEN_MS, "nobody deleted it");
        await engine.queue!.heartbeat([neighbour], now());
        await sleep(300);
      }
      if (asks) {
        assert.equal((await engine.queue!.heartbeat([waiter], now()))[0]!.kind, "queued");
        await sleep(300);
      }
      await other.release([{ ...holder, tombstoneMs: 0 }], now());
      if (asks) await until("the push has come", () => pushes === 1);
      else assert.equal((await engine.queue!.heartbeat([waiter], now()))[0]!.kind, "granted");
      relay.deliver();
      await sleep(300);
      const next = await other.tryAcquire(claim("first"), now());
      assert.equal(next.kind, "busy", "the waiter holds");
      const [renewed] = await engine.renew([{ ...waiter, ttlMs }], now());
      assert.equal(renewed!.kind, "renewed");
    });
  }

  it("a waiter whose grant nobody heard of is deleted in time", async () => {
    await using server = await startEtcd();
    await using relay = await new HoldingRelay(server.port).start();
    await using etcd = new EtcdTestServer(server);
    const [engine, other] = [etcd.engine({ endpoints: [relay.endpoint] }), etcd.engine()];
    const [holder, waiter, neighbour] = [claim("first"), claim("first"), claim("other")];
    await other.tryAcquire(holder, now());
    await engine.tryAcquire(neighbour, now());
    assert.equal((await engine.queue!.enqueue(waiter, now())).kind, "queued");
    relay.holdAnswers(putOf("holdfast/first/"));
    await other.release([{ ...holder, tombstoneMs: 0 }], now());
    await engine.queue!.heartbeat([waiter], now(600));
    await until(
      "the key is deleted",
      async () => {
        await engine.renew([{ ...neighbour, ttlMs: TTL_MS }], now());
        return (await etcd.ctl("get", "--prefix", "--keys-only", "holdfast/first/")) === "";
      },
      10 * TTL_MS,
    );
  });
});
