// Three servers: hung, killed, all restarted. And servers with bounds of their own.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  startZooKeeper,
  startZooKeeperEnsemble,
  type ZooKeeperEnsemble,
  type ZooKeeperServer,
} from "@holdfast/servers";
import { connect } from "../../connect.js";
import { fresh, until } from "./ground.fixture.js";

let ensemble: ZooKeeperEnsemble;

before(async () => {
  // A leader that hangs is given up after a second.
  ensemble = await startZooKeeperEnsemble({ config: ["syncLimit=20"] });
});

after(() => ensemble.stop());

test("a holder outlives every server that hangs, one after the other", async () => {
  await using locks = await connect(ensemble.url);
  const resource = fresh();
  const lease = await locks.acquire(resource, { ttlMs: 5_000 });
  let danger = 0;
  for (const member of ensemble.members) {
    member.pause();
    const end = performance.now() + 3_200;
    while (performance.now() < end) {
      assert.ok(lease.held, "the lease was lost to a server that hangs");
      if (lease.remainingMs() < 200) danger++;
      await sleep(20);
    }
    member.resume();
    await until("renewed", () => lease.renew().then(() => true), 3_000);
  }
  assert.equal(danger, 0, "another server was found in time");
  assert.equal(await lease.release(), "released");
});

test("grants survive a restart of all servers, and tokens go on rising", async () => {
  await using locks = await connect(ensemble.url);
  const [one, other] = [fresh(), fresh()];
  const lease = await locks.acquire(one, { ttlMs: 25_000 });
  const before = await locks.acquire(other);
  await before.release();
  await Promise.all(ensemble.members.map((member) => member.kill()));
  await Promise.all(ensemble.members.map((member) => member.start()));
  await until(
    "renewed",
    () =>
      lease.renew().then(
        () => true,
        () => false,
      ),
    15_000,
  );
  assert.ok(lease.held);
  await using third = await connect(ensemble.url);
  assert.equal(await third.tryAcquire(one), null, "nobody else got in");
  const next = await third.acquire(other, { waitMs: 5_000 });
  assert.ok(next.token > before.token);
  assert.equal(await lease.release(), "released");
});

test("a server's bounds on sessions shorten leases, and are kept", async () => {
  await using server: ZooKeeperServer = await startZooKeeper({
    config: ["maxSessionTimeout=2000"],
  });
  await using locks = await connect(server.url);
  const lease = await locks.acquire("a", { ttlMs: 30_000 });
  await lease.renew();
  const remainingMs = lease.remainingMs();
  assert.ok(remainingMs <= 1_500, `${remainingMs} ms of a session of 2,000`);
  await sleep(2_500);
  assert.ok(lease.held, "renewed as often as it needs");
  await lease.release();
});
