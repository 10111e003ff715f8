// A release that fails leaves a key on a lease that others keep alive.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { startEtcd } from "@holdfast/servers";
import { EtcdTestServer } from "../support/test-server.fixture.js";

test("a key that cannot be deleted ends with its lease, and other grants move to a new lease", async () => {
  await using server = await startEtcd();
  await using etcd = new EtcdTestServer(server);
  const [relay] = await etcd.relays();
  const endpoints = [`127.0.0.1:${relay!.port}`];
  const [ours, other] = [etcd.locks({ endpoints }), etcd.locks()];
  const options = { ttlMs: 12_000, callTimeoutMs: 200, fair: "strict" } as const;
  const kept = await ours.acquire("kept", options);
  const given = await ours.acquire("given", options);
  relay!.cut();
  await assert.rejects(given.release(), { code: "ENGINE" });
  // Longer than the engine tries to delete it.
  await sleep(5_500);
  relay!.mend();
  const next = await other.acquire("given", { waitMs: 30_000 });
  assert.ok(next.token > given.token);
  assert.equal(kept.held, true);
  await Promise.all([next, kept].map((lease) => lease.release()));
});
