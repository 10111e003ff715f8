// An etcd whose quota is used up refuses to write, but it deletes keys and keeps leases alive.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { startEtcd } from "@holdfast/servers";
import { EtcdTestServer } from "../support/test-server.fixture.js";

const TTL_MS = 6_000;

/** Raises the alarm that members raise when the quota is used up. */
async function raiseAlarm(etcd: EtcdTestServer): Promise<void> {
  const post = async (path: string, body: object) => {
    const url = `http://${etcd.endpoints[0]}${path}`;
    const response = await fetch(url, { method: "POST", body: JSON.stringify(body) });
    assert.equal(response.status, 200);
    return (await response.json()) as { header: { member_id: string } };
  };
  const { header } = await post("/v3/maintenance/status", {});
  const alarm = { action: "ACTIVATE", memberID: header.member_id, alarm: "NOSPACE" };
  await post("/v3/maintenance/alarm", alarm);
}

test("waiters keep their places while etcd is out of space, and new claims are refused at once", async () => {
  await using server = await startEtcd();
  await using etcd = new EtcdTestServer(server);
  const [first, second, third] = [etcd.locks(), etcd.locks(), etcd.locks()];
  const holder = await first.acquire("a", { ttlMs: TTL_MS });
  const waiting = second.acquire("a", { ttlMs: TTL_MS });
  await etcd.untilWaiters(first, "a", 1);
  await sleep(500);
  await raiseAlarm(etcd);
  const started = performance.now();
  const callTimeoutMs = 30_000;
  await assert.rejects(third.tryAcquire("b", { ttlMs: 60_000, callTimeoutMs }), {
    ...{ code: "ENGINE", effect: "none", message: /out of space/ },
  });
  const tookMs = performance.now() - started;
  assert.ok(tookMs < callTimeoutMs / 2, `the refusal took ${tookMs} ms`);
  assert.equal(await holder.release(), "released");
  const lease = await waiting;
  await sleep(1.5 * TTL_MS);
  assert.equal(lease.held, true, "it is held by the lease that it waited with");
  await etcd.ctl("alarm", "disarm");
  await lease.renew();
  const stored = await etcd.ctl("get", "--prefix", "--print-value-only", "holdfast/a/");
  assert.match(stored, /"claimed":true/);
  assert.equal(await lease.release(), "released");
});

test("a lease is kept when a renewal for a longer ttl is refused", async () => {
  await using server = await startEtcd();
  await using etcd = new EtcdTestServer(server);
  const locks = etcd.locks();
  const lease = await locks.acquire("a", { ttlMs: TTL_MS });
  await raiseAlarm(etcd);
  await assert.rejects(lease.renew({ ttlMs: 60_000 }), { code: "ENGINE", message: /out of space/ });
  await sleep(1.5 * TTL_MS);
  assert.equal(lease.held, true);
  await etcd.ctl("alarm", "disarm");
  assert.equal(await lease.release(), "released");
});
