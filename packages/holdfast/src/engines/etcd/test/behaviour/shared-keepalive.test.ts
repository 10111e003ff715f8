// All grants with one ttl share one etcd lease. The call that needs it first keeps it alive for
// all.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { startEtcd } from "@holdfast/servers";
import { HoldingRelay } from "../support/holding-relay.fixture.js";
import { EtcdTestServer } from "../support/test-server.fixture.js";

const TTL_MS = 6_000;

test("a claim with a long timeout whose keepalive is not answered costs no other lease", async () => {
  await using server = await startEtcd();
  await using etcd = new EtcdTestServer(server);
  await using relay = await new HoldingRelay(server.port).start();
  const locks = etcd.locks({ endpoints: [relay.endpoint] });
  const terms = { ttlMs: TTL_MS, renewEveryMs: TTL_MS / 2 };
  const names = ["a", "b", "c"];
  const held = await Promise.all(names.map((name) => locks.acquire(name, terms)));
  // A claim wants the lease to be younger than a third of its life.
  await sleep(TTL_MS * 0.4);
  relay.holdAnswers("/v3/lease/keepalive");
  const patient = locks.acquire("d", { ...terms, callTimeoutMs: 20_000 });
  patient.catch(() => {});
  for (let looks = 0; relay.held === 0 && looks < 1_000; looks++) await sleep(5);
  relay.stopHolding();
  await sleep(TTL_MS);
  assert.deepEqual(
    held.map((lease) => lease.held),
    [true, true, true],
  );
  assert.ok((await patient).held);
});

test("a claim with a long timeout succeeds although the call whose keepalive it waited for timed out", async () => {
  await using server = await startEtcd();
  await using etcd = new EtcdTestServer(server);
  await using relay = await new HoldingRelay(server.port).start();
  const locks = etcd.locks({ endpoints: [relay.endpoint] });
  const terms = { ttlMs: 3 * TTL_MS, renew: false };
  await locks.acquire("a", terms);
  await sleep(3 * TTL_MS * 0.4);
  relay.holdAnswers("/v3/lease/keepalive");
  const impatient = locks.acquire("b", { ...terms, callTimeoutMs: 1_500 });
  const failing = assert.rejects(impatient, { code: "ENGINE", effect: "none" });
  for (let looks = 0; relay.held === 0 && looks < 1_000; looks++) await sleep(5);
  const patient = locks.acquire("c", { ...terms, callTimeoutMs: 60_000 });
  patient.catch(() => {});
  await failing;
  relay.stopHolding();
  assert.ok((await patient).held);
});
