// A Cluster whose shards fail one after the other.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { ClusterServers } from "@holdfast/servers";
import { exponential } from "../../../../core/acquiring/retry.js";
import type { Locks } from "../../../../locks.js";
import { until } from "../../../../test-support/until.fixture.js";
import { SLOTS, slotOf } from "../../protocol/slots.js";
import { keyFor, namesIn, renewals, shardOf } from "./shards.fixture.js";
import { crash, TestCluster } from "./test-cluster.fixture.js";
import { CLIENT_NAMES, type ClientName } from "./test-server.fixture.js";

let cluster: TestCluster<ClusterServers>;

/** Tests locks while shards of a Cluster hang and fail. */
export function checkFailingShards(clients: readonly ClientName[]): void {
  describe("a Cluster", () => {
    before(async () => {
      cluster = await TestCluster.cluster();
      // By default all shards refuse commands while one of them has no primary.
      for (const node of cluster.servers.nodes) {
        await cluster.node(node).config("SET", "cluster-require-full-coverage", "no");
      }
    });
    after(async () => cluster[Symbol.asyncDispose]());

    for (const client of clients) {
      it(`a shard that hangs costs other shards no lease and no turn (${client})`, async () => {
        const [hung, first, second] = [
          ...namesIn(0, 1, `hung-${client}`),
          ...namesIn(1, 2, `fine-${client}`),
        ] as [string, string, string];
        const [server, replica] = await shardOf(cluster, hung);
        const ours = await cluster.locks({ client });
        const other = await cluster.locks();
        const ttlMs = 6_000;
        await ours.acquire(hung, { ttlMs });
        const lease = await ours.acquire(first, { ttlMs });
        using renewed = renewals(first);
        // An expiry pushes nothing, so only a heartbeat gets the waiter its grant.
        await other.acquire(second, { ttlMs: 6_500, renew: false });
        const turns = [hung, second].map((name) => ours.acquire(name, { waitMs: 60_000 }));
        turns[0]!.catch(() => {});
        await sleep(100);
        // The replica hangs too, so nobody replaces the primary.
        for (const one of [replica, server]) one.pause();
        const started = performance.now();
        try {
          await turns[1];
          const tookMs = performance.now() - started;
          assert.ok(tookMs < 10_500, `its turn came after ${tookMs} ms`);
          await sleep(Math.max(0, 9_000 - tookMs));
          assert.ok(lease.held, "it was lost with the other shard");
          const gapMs = renewed.longestGapMs();
          assert.ok(gapMs < ttlMs - 300, `${gapMs} ms without a renewal`);
        } finally {
          for (const one of [server, replica]) one.resume();
        }
      });

      it(`a replica replaces a killed primary, and waiters get their turns (${client})`, async () => {
        const [name] = namesIn(0, 1, `killed-${client}`) as [string];
        const [fine] = namesIn(2, 1, `untouched-${client}`) as [string];
        const [server] = await shardOf(cluster, name);
        const ours = await cluster.locks({ client });
        const other = await cluster.locks({ client });
        const retry = exponential({ minMs: 50, maxMs: 500 });
        const lease = await ours.acquire(name, { ttlMs: 30_000 });
        const beside = await ours.acquire(fine, { ttlMs: 6_000 });
        using renewed = renewals(fine);
        const waiting = other.acquire(name, { waitMs: 60_000, retry });
        await until("it is queued", async () => (await ours.inspect(name)).waiters.length === 1);
        crash(server);
        const now = await cluster.servers.failedOver(keyFor(name), server);
        assert.notEqual(now, server);
        // The replica had all data: the lease continues, and its release promotes the waiter.
        await until(
          "it is renewed by the successor",
          () =>
            lease.renew().then(
              () => true,
              () => false,
            ),
          28_000,
        );
        assert.ok(lease.held);
        const released = await lease.release();
        assert.equal(released, "released");
        const next = await waiting;
        assert.ok(next.token > lease.token, `${next.token} came after ${lease.token}`);
        assert.ok(beside.held);
        const gapMs = renewed.longestGapMs();
        assert.ok(gapMs < 5_500, `another shard went ${gapMs} ms without a renewal`);
        await server.restart();
      });

      it(`grants that need a replica work again after a failover (${client})`, async () => {
        const [name] = namesIn(1, 1, `kept-${client}`) as [string];
        const [server] = await shardOf(cluster, name);
        const replicas = { replicas: 1, timeoutMs: 2_000 };
        const ours = await cluster.locks({ client, replicas });
        const first = await ours.acquire(name);
        await first.release();
        crash(server);
        await cluster.servers.failedOver(keyFor(name), server);
        // The new primary has no replica yet, so nothing may be granted.
        const alone = await ours.acquire(name, { waitMs: 0 }).catch((error) => error.code);
        assert.equal(alone, "ENGINE");
        await server.restart();
        await shardOf(cluster, name);
        const retry = exponential({ minMs: 100, maxMs: 500 });
        const lease = await ours.acquire(name, { waitMs: 40_000, retry });
        assert.ok(lease.token > first.token);
        await lease.renew();
        assert.equal(await lease.release(), "released");
      });
    }

    it("500 waiters for 50 resources of all shards drain, and list finds every one", async () => {
      const odd = ["{", "}", "{}", "{a}b", "a{b}", "%7B", "käse/🧀", "x*[y]?", "new\nline", "q\"'"];
      const names = [...odd, ...Array.from({ length: 40 }, (_, i) => `drained-${i}`)];
      const slots = new Set(names.map((name) => Math.floor((slotOf(keyFor(name)) * 3) / SLOTS)));
      assert.equal(slots.size, 3);
      const [ours, other] = await Promise.all(
        CLIENT_NAMES.map((client) => cluster.locks({ client })),
      );
      const held = await Promise.all(names.map((name) => ours!.acquire(name)));
      const waits = names.flatMap((name) =>
        Array.from({ length: 10 }, async (_, i) => {
          const locks = i % 2 === 0 ? ours! : other!;
          const options = { waitMs: 60_000, fair: "strict" } as const;
          const lease = await locks.acquire(name, options);
          await lease.release();
          return lease.token;
        }),
      );
      await until("all wait", async () => (await waitersOf(other!, names)) === 500, 20_000);
      const listed = new Set<string>();
      for await (const { resource } of other!.list()) listed.add(resource);
      assert.deepEqual(
        names.filter((name) => !listed.has(name)),
        [],
      );
      await Promise.all(held.map((lease) => lease.release()));
      const tokens = await Promise.all(waits);
      assert.equal(
        new Set(tokens.map((token, i) => `${names[Math.floor(i / 10)]} ${token}`)).size,
        500,
      );
      assert.equal(await waitersOf(other!, names), 0);
    });
  });
}

async function waitersOf(locks: Locks, names: readonly string[]): Promise<number> {
  const views = await Promise.all(names.map((name) => locks.inspect(name)));
  return views.reduce((sum, { waiters }) => sum + waiters.length, 0);
}
