// Three members: what holders and waiters see when some of them stop, hang or come back.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type EtcdCluster, startEtcdCluster } from "@holdfast/servers";
import { systemClock } from "../../../../core/runtime/clock.js";
import { soon, timed } from "../../../../test-support/soon.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { EtcdClient } from "../../client/client.js";
import { get } from "../../client/requests.js";
import { Leases } from "../../leases/leases.js";
import { resolveEtcd } from "../../options.js";
import { EtcdTestServer } from "../support/test-server.fixture.js";

let cluster: EtcdCluster;
before(async () => {
  cluster = await startEtcdCluster();
});
after(() => cluster.stop());

function itWithServer(title: string, part: (etcd: EtcdTestServer) => Promise<void>): void {
  it(title, async () => {
    await using etcd = new EtcdTestServer(...cluster.members);
    await part(etcd);
  });
}

describe("etcd of three members", { concurrency: 1 }, () => {
  itWithServer(
    "a lease outlives the leader of the cluster, and its waiter is granted after it",
    async (etcd) => {
      const [holder, ours] = [etcd.locks(), etcd.locks()];
      const lease = await holder.acquire("leader", { ttlMs: 8_000 });
      const waiting = ours.acquire("leader", { waitMs: 60_000 });
      await etcd.untilWaiters(holder, "leader", 1);
      const leader = await cluster.leader();
      await leader.kill();
      // Longer than the ttl: the other two members renewed it.
      await sleep(9_000);
      assert.equal(lease.held, true);
      assert.equal(await lease.release(), "released");
      const next = await waiting;
      assert.ok(next.token > lease.token);
      await leader.start();
      assert.equal(await next.release(), "released");
    },
  );

  itWithServer("calls go to another member when one hangs", async (etcd) => {
    const [first] = cluster.members;
    const [holder, ours] = [etcd.locks(), etcd.locks()];
    // A hand-over takes no longer than a call may.
    await soon(9_000, async () => {
      const lease = await holder.acquire("hang", { ttlMs: 20_000 });
      const waiting = ours.acquire("hang", { waitMs: 60_000 });
      await etcd.untilWaiters(holder, "hang", 1);
      first!.pause();
      try {
        const tookMs = await timed(async () => {
          assert.equal(await lease.release(), "released");
          await waiting;
        });
        const next = await waiting;
        assert.equal(await ours.check(next.sequencer), true);
        await (await etcd.locks().acquire("hang-2")).release();
        assert.equal(await next.release(), "released");
        return tookMs;
      } finally {
        first!.resume();
      }
    });
  });

  itWithServer("a lease is still held when all members were killed and came back", async (etcd) => {
    const [holder, ours] = [etcd.locks(), etcd.locks()];
    const lease = await holder.acquire("all", { ttlMs: 60_000 });
    const waiting = ours.acquire("all", { waitMs: 90_000, retry: Array(500).fill(100) });
    await etcd.untilWaiters(holder, "all", 1);
    await Promise.all(cluster.members.map((member) => member.restart()));
    await lease.renew();
    assert.equal(lease.held, true);
    assert.equal(await lease.release(), "released");
    const next = await waiting;
    assert.ok(next.token > lease.token, "tokens go on rising");
    assert.equal(await next.release(), "released");
  });

  itWithServer(
    "a holder that is cut off in silence loses its lease before the next waiter is granted",
    async (etcd) => {
      const relays = await etcd.relays();
      const endpoints = relays.map(({ port }) => `127.0.0.1:${port}`);
      const [cut, other] = [etcd.locks({ endpoints }), etcd.locks()];
      const lease = await cut.acquire("silence", { ttlMs: 2_000 });
      let lostAt = Infinity;
      lease.signal.addEventListener("abort", () => {
        lostAt = performance.now();
      });
      await sleep(1_000);
      for (const relay of relays) relay.hang();
      const next = await other.acquire("silence", { waitMs: 40_000 });
      const grantedAt = performance.now();
      assert.equal(lease.held, false);
      assert.ok(lostAt < grantedAt, "the signal came before the next grant");
      for (const relay of relays) relay.mend();
      assert.equal(await lease.release(), "gone");
      await sleep(300);
      assert.equal(next.held, true);
      assert.equal(await next.release(), "released");
    },
  );

  itWithServer("a keepalive that a replaced leader acknowledged does not count", async () => {
    // A leader that hears of its successor first passes the keepalive on, and that answer counts.
    let deposed = false;
    for (let i = 0; i < 5 && !deposed; i++) deposed = await ignoresReplacedLeader();
    assert.ok(deposed, "the replaced leader acknowledged a keepalive");
  });

  /** Whether a paused leader acknowledged a keepalive that does not count. */
  async function ignoresReplacedLeader(): Promise<boolean> {
    const leader = await cluster.leader();
    const endpoints = [`127.0.0.1:${leader.port}`];
    const client = new EtcdClient(resolveEtcd({ endpoints }));
    const deadline = systemClock.now() + 30_000;
    const read = () => {
      const txn = { compare: [], success: [get("holdfast/any")], failure: [] };
      return client.txn(txn, { deadline, repeatable: true });
    };
    try {
      const leases = new Leases(client, (id) => `holdfast/%note/test/lease-${id}`);
      const lease = await leases.ready(8_000, 1, deadline);
      const { since } = lease;
      leader.pause();
      await sleep(3_000);
      // The keepalive waits in the socket of the paused leader, which mostly answers before it
      // knows.
      const acknowledged = leases.ready(8_000, 0, deadline);
      await sleep(200);
      leader.resume();
      assert.equal((await acknowledged).id, lease.id);
      assert.notEqual(await cluster.leader(), leader, "another leader was elected");
      await read();
      const uncounted = lease.since === since;
      const before = systemClock.now();
      await leases.ready(8_000, 0, deadline);
      await read();
      assert.ok(lease.since >= before, "the next keepalive counts");
      return uncounted;
    } finally {
      leader.resume();
      client.close();
    }
  }

  itWithServer("without a majority claims fail, and leases are lost", async (etcd) => {
    const locks = etcd.locks();
    const lease = await locks.acquire("minority", { ttlMs: 4_000, callTimeoutMs: 3_000 });
    const [first, second] = cluster.members;
    first!.pause();
    second!.pause();
    try {
      await assert.rejects(etcd.locks().acquire("minority-2", { callTimeoutMs: 1_000 }), {
        code: "ENGINE",
      });
      await until("the lease is lost", () => !lease.held);
    } finally {
      first!.resume();
      second!.resume();
    }
    const options = { waitMs: 60_000, retry: Array(400).fill(100) };
    const next = await etcd.locks().acquire("minority", options);
    assert.ok(next.token > lease.token);
  });
});
