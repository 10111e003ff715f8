// Lost answers, watches that are opened again, and members that the client leaves during a call.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type Relay, startEtcd } from "@holdfast/servers";
import { until } from "../../../../test-support/until.fixture.js";
import { EtcdTestServer } from "../support/test-server.fixture.js";

type Part = (etcd: EtcdTestServer, relays: readonly [Relay, Relay]) => Promise<void>;

/** Two relays to one server, which a client takes for two members. */
function itWithServer(title: string, part: Part): void {
  it(title, async () => {
    await using server = await startEtcd();
    await using etcd = new EtcdTestServer(server);
    const [first, second] = [await etcd.relays(), await etcd.relays()];
    await part(etcd, [first[0]!, second[0]!]);
  });
}

const endpoints = (...relays: Relay[]) => relays.map(({ port }) => `127.0.0.1:${port}`);
const keysOf = async (etcd: EtcdTestServer, resource: string) =>
  (await etcd.ctl("get", "--prefix", "--keys-only", `holdfast/${resource}/`))
    .split("\n")
    .filter((line) => line !== "");

describe("schedules", { concurrency: 3 }, () => {
  for (const lockDelayMs of [0, 60_000]) {
    itWithServer(
      `a release whose answer is lost answers released, with a lock-delay of ${lockDelayMs}`,
      async (etcd, [relay]) => {
        const [ours, other] = [etcd.locks({ endpoints: endpoints(relay) }), etcd.locks()];
        const lease = await ours.acquire("a", { ttlMs: 20_000, lockDelayMs, callTimeoutMs: 3_000 });
        relay.mute();
        const released = lease.release();
        await until("the keys are gone", async () => (await keysOf(etcd, "a")).length === 0);
        relay.cut();
        relay.mend();
        assert.equal(await released, "released");
        const next = await other.tryAcquire("a");
        assert.ok(next !== null && next.token > lease.token);
      },
    );
  }

  itWithServer(
    "a repeated release does not end the grant of a successor",
    async (etcd, [relay]) => {
      const [ours, other] = [etcd.locks({ endpoints: endpoints(relay) }), etcd.locks()];
      const lease = await ours.acquire("a", { ttlMs: 20_000, callTimeoutMs: 3_000 });
      const waiting = other.acquire("a", { ttlMs: 20_000 });
      await etcd.untilWaiters(other, "a", 1);
      relay.mute();
      const released = lease.release();
      const next = await waiting;
      relay.cut();
      relay.mend();
      assert.equal(await released, "released");
      await next.renew();
      assert.equal(next.held, true);
    },
  );

  itWithServer("a claim whose answer is lost keeps its place", async (etcd, [relay]) => {
    const [ours, other] = [etcd.locks({ endpoints: endpoints(relay) }), etcd.locks()];
    await (await ours.acquire("warm")).release();
    const lease = await other.acquire("a");
    relay.mute();
    const waiting = ours.acquire("a", { callTimeoutMs: 1_000, retry: Array(20).fill(50) });
    await etcd.untilWaiters(other, "a", 1);
    relay.cut();
    relay.mend();
    await sleep(300);
    assert.equal((await keysOf(etcd, "a")).length, 2, "one key for each");
    await lease.release();
    assert.equal((await waiting).held, true);
    assert.equal((await keysOf(etcd, "a")).length, 1);
  });

  itWithServer(
    "a lease lives on when its client leaves the member that got the keepalive",
    async (etcd, relays) => {
      const ours = etcd.locks({ endpoints: endpoints(...relays) });
      const lease = await ours.acquire("a", { ttlMs: 6_000 });
      // Requests arrive, and answers do not.
      relays[0].mute();
      await sleep(7_500);
      assert.equal(lease.held, true);
      relays[0].cut();
      relays[1].mute();
      relays[0].mend();
      await sleep(7_500);
      assert.equal(lease.held, true);
      await lease.renew();
    },
  );

  itWithServer(
    "a release while a watch is opened again grants the waiter once",
    async (etcd, relays) => {
      const [holder, ours] = [etcd.locks(), etcd.locks({ endpoints: endpoints(...relays) })];
      let grants = 0;
      for (let i = 0; i < 6; i++) {
        const lease = await holder.acquire("a", { ttlMs: 20_000 });
        const waiting = ours.acquire("a", { retry: Array(50).fill(20) }).then((one) => {
          grants++;
          return one;
        });
        await etcd.untilWaiters(holder, "a", 1);
        const [gone, left] = i % 2 === 0 ? relays : [relays[1], relays[0]];
        left.mend();
        // Before, at and after the moment at which the watch is lost.
        const leaving = sleep(i * 3).then(() => lease.release());
        await sleep(8);
        gone.cut();
        assert.equal(await leaving, "released");
        const next = await waiting;
        assert.equal(next.held, true);
        assert.equal((await keysOf(etcd, "a")).length, 1, "one key, and one holder");
        await next.release();
        gone.mend();
      }
      assert.equal(grants, 6);
    },
  );
});
