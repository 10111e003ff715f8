// Three servers that hang, are killed or restart, and servers with their own bounds on sessions.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  startZooKeeper,
  startZooKeeperEnsemble,
  type ZooKeeperEnsemble,
  type ZooKeeperServer,
} from "@holdfast/servers";
import { connect } from "../../../../connect.js";
import type { Lease } from "../../../../core/holding/lease.js";
import { until } from "../../../../test-support/until.fixture.js";
import { fresh } from "../support/test-server.fixture.js";

let ensemble: ZooKeeperEnsemble;

before(async () => {
  // Members give up a leader that hangs after a second, both its followers and those that join it.
  ensemble = await startZooKeeperEnsemble({ config: ["initLimit=20", "syncLimit=20"] });
});

after(() => ensemble.stop());

test("a holder outlives every server that hangs, one after the other", async () => {
  await using locks = await connect(ensemble.url);
  const resource = fresh();
  const lease = await locks.acquire(resource, { ttlMs: 8_000 });
  let danger = 0;
  for (const member of ensemble.members) {
    member.pause();
    const end = performance.now() + 5_200;
    while (performance.now() < end) {
      assert.ok(lease.held, "the lease was lost because a server hangs");
      if (lease.remainingMs() < 200) danger++;
      await sleep(20);
    }
    member.resume();
    // A member that is still joining and the next one that hangs would be two of three.
    await ensemble.whole();
    await until("renewed", () => renews(lease));
  }
  assert.equal(danger, 0, "another server was found in time");
  assert.equal(await lease.release(), "released");
});

test("grants survive a restart of all servers, and tokens go on rising", async () => {
  await ensemble.leader();
  await using locks = await connect(ensemble.url);
  const [one, other] = [fresh(), fresh()];
  const lease = await locks.acquire(one, { ttlMs: 60_000 });
  const before = await locks.acquire(other);
  await before.release();
  await Promise.all(ensemble.members.map((member) => member.kill()));
  await Promise.all(ensemble.members.map((member) => member.start()));
  await until("renewed", () => renews(lease), 50_000);
  assert.ok(lease.held);
  await using third = await connect(ensemble.url);
  assert.equal(await third.tryAcquire(one), null, "nobody else was granted the resource");
  const next = await third.acquire(other, { waitMs: 30_000 });
  assert.ok(next.token > before.token);
  assert.equal(await lease.release(), "released");
});

test("a grant that was left behind keeps its time when another server leads", async () => {
  await ensemble.whole();
  for (const hold of ["session", "ttl"] as const) {
    const resource = fresh();
    const url = `${ensemble.url}?hold=${hold}`;
    const leader = await ensemble.leader();
    const started = performance.now();
    {
      await using locks = await connect(url);
      const terms = { atMostMs: 20_000, atLeastMs: 4_000 };
      assert.deepEqual((await locks.once(resource, terms, () => {})).ran, true);
    }
    await leader.kill();
    await ensemble.leader();
    await using locks = await connect(url);
    // Two leaders have two clocks. The engine counts from its own observation, and grants nobody
    // too early.
    const tries = async () => (await locks.tryAcquire(resource).catch(() => null)) !== null;
    await until("it is over", tries);
    const tookMs = performance.now() - started;
    assert.ok(tookMs >= 4_000, `let in after ${tookMs} ms`);
    await leader.start();
    await ensemble.whole();
  }
});

test("leases are shorter if the servers grant shorter sessions", async () => {
  await using server: ZooKeeperServer = await startZooKeeper({
    config: ["maxSessionTimeout=6000"],
  });
  await using locks = await connect(server.url);
  const lease = await locks.acquire("a", { ttlMs: 30_000 });
  await lease.renew();
  const remainingMs = lease.remainingMs();
  assert.ok(remainingMs <= 4_500, `${remainingMs} ms of a session of 6,000`);
  await sleep(6_500);
  assert.ok(lease.held, "it is renewed in time");
  await lease.release();
});

/** A renewal may fail while a leader is elected; the lease lives on, and the next one succeeds. */
function renews(lease: Lease): Promise<boolean> {
  return lease.renew().then(
    () => true,
    () => false,
  );
}
