import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { startEtcd } from "@holdfast/servers";
import type { Lease } from "../../../../core/holding/lease.js";
import { EtcdTestServer } from "./test-server.fixture.js";

const AT_A_TIME = 100;
const WATCHED_MS = 3_000;
const TTL_MS = 9_000;
/**
 * A lease is renewed three times in its life, so ten times are a bound, however many grants it has.
 */
const MOST_KEEPALIVES = Math.ceil((10 * WATCHED_MS) / TTL_MS) + 1;

/** Holds so many leases in one process, and counts the keepalives at the server. */
export async function holdMany(count: number): Promise<void> {
  await using server = await startEtcd();
  await using etcd = new EtcdTestServer(server);
  const locks = etcd.locks();
  const options = { ttlMs: TTL_MS, fair: "strict" } as const;
  const leases: Lease[] = [];
  for (let i = 0; i < count; i += AT_A_TIME) {
    const some = Array.from({ length: AT_A_TIME }, (_, j) =>
      locks.acquire(`many-${i + j}`, options),
    );
    leases.push(...(await Promise.all(some)));
  }
  const before = await etcd.calls("LeaseKeepAlive");
  await sleep(WATCHED_MS);
  const made = (await etcd.calls("LeaseKeepAlive")) - before;
  assert.ok(made >= 1 && made <= MOST_KEEPALIVES, `${made} keepalives in ${WATCHED_MS} ms`);
  const held = leases.filter((lease) => lease.held).length;
  assert.equal(held, count, "all leases are still held");
  const released = await Promise.all(leases.map((lease) => lease.release()));
  assert.ok(released.every((answer) => answer === "released"));
}
