// A process that was stopped for nearly as long as its session lives, and then goes on.
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { startZooKeeperEnsemble, type ZooKeeperServer } from "@holdfast/servers";
import type { Lease } from "../../../../core/holding/lease.js";
import { Locks } from "../../../../locks.js";
import { until } from "../../../../test-support/until.fixture.js";
import { zookeeperEngine } from "../../index.js";
import { fresh } from "../support/test-server.fixture.js";

const AT_MOST_MS = 4_000;
const AT_LEAST_MS = 2_000;
/** Its session lives 5.3 s, and the leader counts in steps of half a second. */
const STOPPED_MS = 4_300;

test("a lease that a process takes right after it was stopped lasts its whole time", async () => {
  await using ensemble = await startZooKeeperEnsemble();
  const leader = await ensemble.leader();
  const follower = ensemble.members.find((member) => member !== leader)!;
  await using other = new Locks(zookeeperEngine({ hosts: leader.hosts }));
  await using stopped = new Locks(zookeeperEngine({ hosts: follower.hosts }));
  await stopped.once(fresh(), { atMostMs: AT_MOST_MS }, () => {});
  // The session is kept alive a few times, as usual.
  await sleep(1_500);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, STOPPED_MS);
  const { tookMs, hadMs } = await nextAfter(fresh(), stopped, other, follower);
  assert.ok(hadMs >= AT_LEAST_MS, `it had ${hadMs} ms when it began`);
  // A follower tells the leader twice a tick which sessions it heard from, maybe just before it
  // hangs.
  assert.ok(tookMs >= AT_LEAST_MS, `the next run began after ${tookMs} ms`);
});

/**
 * Calls once while the server hangs, so that its grant cannot be left behind. Returns for how long
 * the grant keeps others out.
 */
async function nextAfter(
  resource: string,
  stopped: Locks,
  other: Locks,
  server: ZooKeeperServer,
): Promise<{ tookMs: number; hadMs: number }> {
  const times = { atMostMs: AT_MOST_MS, atLeastMs: AT_LEAST_MS };
  const began = performance.now();
  const controller = new AbortController();
  const aborted = once(controller.signal, "abort");
  const hadMs = await new Promise<number>((resolve, reject) => {
    const run = async (lease: Lease) => {
      const tookMs = performance.now() - began;
      resolve(lease.remainingMs() + tookMs);
      server.pause();
      await aborted;
    };
    stopped.once(resource, times, run).catch(reject);
  });
  try {
    const tookMs = () => performance.now() - began;
    const runs = async () => (await other.once(resource, times, () => {})).ran;
    await until("another once runs", async () => tookMs() > AT_LEAST_MS || (await runs()), 20_000);
    return { tookMs: tookMs(), hadMs };
  } finally {
    server.resume();
    controller.abort();
  }
}
