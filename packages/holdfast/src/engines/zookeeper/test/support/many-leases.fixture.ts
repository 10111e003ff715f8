import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { Lease } from "../../../../core/holding/lease.js";
import { until } from "../../../../test-support/until.fixture.js";
import { fresh, type ZookeeperTestServer } from "./test-server.fixture.js";

/** Holds so many leases in one process, and counts the requests that keep them. */
export async function keepMany(zookeeper: ZookeeperTestServer, count: number): Promise<void> {
  const locks = zookeeper.locks();
  const names = Array.from({ length: count }, () => fresh());
  const leases: Lease[] = [];
  for (let i = 0; i < names.length; i += 500) {
    const some = names.slice(i, i + 500);
    const options = { ttlMs: 10_000, callTimeoutMs: 10_000 };
    leases.push(...(await Promise.all(some.map((name) => locks.acquire(name, options)))));
  }
  // Each node is watched once. From then on renewals need one request for the session.
  const watched = async () => (await zookeeper.server.metric("zk_watch_count")) >= count;
  await until("all are watched", watched, 20_000);
  await sleep(500);
  const packets = () => zookeeper.server.metric("zk_packets_received");
  const [first, started] = [await packets(), performance.now()];
  await sleep(2_500);
  const perSecond = (((await packets()) - first) * 1_000) / (performance.now() - started);
  assert.ok(perSecond > 0 && perSecond < 30, `${perSecond} requests a second`);
  assert.ok(leases.every((lease) => lease.held && lease.remainingMs() > 3_000));
}
