// The next waiter takes over without asking the server, unless it has a reason to ask.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type EtcdServer, startEtcd } from "@holdfast/servers";
import { systemClock } from "../../../../core/runtime/clock.js";
import type { Claim, Engine, Granted } from "../../../../engine.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { soon } from "../../../../test-support/soon.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { newRecord } from "../../queue/key-record.js";
import { Keys, markerOf } from "../../queue/keys.js";
import { EtcdTestServer } from "../support/test-server.fixture.js";

/** Long enough for a wrong grant to show. No test waits for a right one by this. */
const SETTLE_MS = 300;
const keys = new Keys("holdfast/");
let server: EtcdServer;
let etcd: EtcdTestServer;
let names = 0;

before(async () => {
  server = await startEtcd();
  etcd = new EtcdTestServer(server);
});

after(async () => {
  await etcd[Symbol.asyncDispose]();
  await server.stop();
});

const keyOf = ({ resource, grantId }: Claim) => keys.claimKey(resource, grantId);

/** Another engine holds, and a claim of this engine is the next in the queue. */
async function nextInQueue(engine: Engine) {
  const resource = `r${names++}`;
  const [holder, other] = [claim(resource), etcd.engine()];
  assert.equal((await other.tryAcquire(holder, now())).kind, "granted");
  const waiter = claim(resource);
  const pushed: [grantId: string, granted: Granted][] = [];
  engine.queue!.onGrant(({ grantId }, granted) => pushed.push([grantId, granted]));
  assert.equal((await engine.queue!.enqueue(waiter, now())).kind, "queued");
  await sleep(SETTLE_MS);
  await engine.queue!.heartbeat([waiter], now());
  const leave = async () => void (await other.release([{ ...holder, tombstoneMs: 0 }], now()));
  return { resource, holder, waiter, pushed, leave };
}

test("the next waiter is granted when the holder leaves, and its first renewal writes its key", async () => {
  const engine = etcd.engine();
  const { waiter, pushed, leave } = await nextInQueue(engine);
  const before = (await etcd.calls("Txn")) + 1;
  await leave();
  await until("the push has come", () => pushed.length === 1);
  assert.equal(await etcd.calls("Txn"), before, "one transaction for the release, and none to ask");
  const [, { since, ttlMs }] = pushed[0]!;
  assert.ok(ttlMs <= 3_000, "valid for as long as its place in the queue was");
  assert.ok(since <= systemClock.now());
  const [renewed] = await engine.renew([{ ...waiter, ttlMs: 10_000 }], now());
  assert.equal(renewed!.kind, "renewed");
  assert.equal(await etcd.calls("Txn"), before + 1, "one transaction");
  assert.match(await etcd.ctl("get", keyOf(waiter)), /"claimed":true/);
  const [again] = await engine.renew([{ ...waiter, ttlMs: 10_000 }], now());
  assert.equal(again!.kind, "renewed");
});

test("a waiter that took over and is never renewed is deleted in time", async () => {
  const engine = etcd.engine();
  const { waiter, pushed, leave } = await nextInQueue(engine);
  await leave();
  await until("the push has come", () => pushed.length === 1);
  await until("the key is deleted", async () => (await etcd.ctl("get", keyOf(waiter))) === "");
});

test("a lock-delay is kept even if its marker came after the queue was read", async () => {
  const engine = etcd.engine();
  const resource = `r${names++}`;
  const holder = claim(resource, { lockDelayMs: 60_000 });
  // Put by hand, so that the marker comes after the waiter has read the queue.
  await etcd.ctl("put", keyOf(holder), JSON.stringify(newRecord(holder, "other", true)));
  const waiter = claim(resource);
  const pushed: string[] = [];
  engine.queue!.onGrant(({ grantId }) => pushed.push(grantId));
  await engine.queue!.enqueue(waiter, now());
  await sleep(SETTLE_MS);
  await etcd.ctl("put", markerOf(keyOf(holder)), "");
  await etcd.ctl("del", keyOf(holder));
  await sleep(SETTLE_MS);
  assert.deepEqual(pushed, []);
  assert.equal((await engine.queue!.heartbeat([waiter], now()))[0]!.kind, "queued");
});

test("a waiter whose predecessor withdraws is not granted while another holds", async () => {
  const engine = etcd.engine();
  const { resource, waiter, pushed, leave } = await nextInQueue(engine);
  const last = claim(resource);
  assert.equal((await engine.queue!.enqueue(last, now())).kind, "queued");
  await sleep(SETTLE_MS);
  assert.deepEqual(await engine.queue!.withdraw(waiter, now()), { kind: "withdrawn" });
  await sleep(SETTLE_MS);
  assert.deepEqual(pushed, []);
  await leave();
  await until("the push has come when the holder leaves", () => pushed.length === 1);
  assert.equal(pushed[0]![0], last.grantId);
});

test("a waiter that took over after its own key was deleted is lost at its first renewal", async () => {
  const engine = etcd.engine();
  const { waiter, pushed, leave } = await nextInQueue(engine);
  await etcd.ctl("del", keyOf(waiter));
  await leave();
  await until("the push has come", () => pushed.length === 1);
  const [renewed] = await engine.renew([{ ...waiter, ttlMs: 10_000 }], now());
  assert.equal(renewed!.kind, "gone");
});

test("a waiter whose lease was revoked before its turn asks the server, and is not granted", async () => {
  const engine = etcd.engine();
  const { resource, waiter, pushed, leave } = await nextInQueue(engine);
  const [, lease] = await etcd.leasesIn(resource);
  await etcd.revoke(lease!);
  await sleep(SETTLE_MS);
  await leave();
  await sleep(SETTLE_MS);
  assert.deepEqual(pushed, []);
  assert.deepEqual(await engine.queue!.heartbeat([waiter], now()), [{ kind: "unknown" }]);
});

test("a grant that is revoked before its first renewal is not renewed", async () => {
  const engine = etcd.engine();
  const { resource, waiter, pushed, leave } = await nextInQueue(engine);
  await leave();
  await until("the push has come", () => pushed.length === 1);
  const { token } = pushed[0]![1];
  assert.equal(await engine.check({ resource, mode: "exclusive", token }, now()), true);
  assert.equal(await etcd.engine().revoke({ resource, token, force: false }, now()), "revoked");
  const [renewed] = await engine.renew([{ ...waiter, ttlMs: 10_000 }], now());
  assert.deepEqual(renewed, { kind: "gone", why: "revoked" });
});

test("a waiter whose lease is old asks the server at its turn", async () => {
  // Nobody sends heartbeats here, so its lease ages, and a grant on that lease would be short.
  const engine = etcd.engine();
  const { waiter, pushed, leave } = await nextInQueue(engine);
  await sleep(1_600);
  const before = (await etcd.calls("Txn")) + 1;
  await leave();
  await until("the push has come", () => pushed.length === 1);
  assert.ok((await etcd.calls("Txn")) > before);
  assert.equal(pushed[0]![1].ttlMs, waiter.ttlMs);
});

test("a waiter with limit 2 is woken when either of the two holders leaves", async () => {
  // Nobody sends heartbeats here, so only its watches can wake it.
  for (const leaver of [0, 1]) {
    await soon(2_900, async () => {
      const resource = `r${names++}`;
      const [engine, other] = [etcd.engine(), etcd.engine()];
      const terms = { mode: "shared", limit: 2 } as const;
      const permits = Array.from({ length: 3 }, () => claim(resource, terms));
      const pushed: string[] = [];
      engine.queue!.onGrant(({ grantId }) => pushed.push(grantId));
      for (const held of permits.slice(0, 2)) await other.tryAcquire(held, now());
      assert.equal((await engine.queue!.enqueue(permits[2]!, now())).kind, "queued");
      await other.release([{ ...permits[leaver]!, tombstoneMs: 0 }], now());
      const tookMs = await until("the push has come", () => pushed.length === 1);
      assert.deepEqual(pushed, [permits[2]!.grantId]);
      return tookMs;
    });
  }
});
