// Slots and primaries of a Cluster that move while locks in them are used.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { ClusterServers, RedisServer } from "@holdfast/servers";
import { soon, timed } from "../../../../test-support/soon.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { slotOf, tagOf } from "../../protocol/slots.js";
import { countWhile } from "./counting.fixture.js";
import { handOver, keyFor, namesIn } from "./shards.fixture.js";
import { TestCluster } from "./test-cluster.fixture.js";
import { CLIENT_NAMES, type ClientName } from "./test-server.fixture.js";

const TTL_MS = 20_000;
/** Longer than the pause after TRYAGAIN, so that clients really find half a slot. */
const KEY_PAUSE_MS = 60;

let cluster: TestCluster<ClusterServers>;

/** Tests locks whose slot moves from one shard to another. */
export function checkMovingSlots(clients: readonly ClientName[], rounds: number): void {
  describe("a Cluster that changes", () => {
    before(async () => {
      cluster = await TestCluster.cluster();
    });
    after(async () => cluster[Symbol.asyncDispose]());

    it("a slot that moves slowly, there and back, costs no turn and no write", async () => {
      const [name] = namesIn(1, 1, "moving") as [string];
      const home = await cluster.servers.primaryOf(keyFor(name));
      const away = await cluster.servers.primaryOf(keyFor(namesIn(2, 1)[0]!));
      const everybody = await Promise.all(
        threeClients().map((client) => cluster.locks({ client })),
      );
      const counted = await countWhile(everybody, name, TTL_MS, async () => {
        for (let i = 0; i < rounds; i++) {
          await moveSlot(slotOf(keyFor(name)), home, away);
          await sleep(300);
          await moveSlot(slotOf(keyFor(name)), away, home);
          await sleep(300);
        }
      });
      // A busy machine makes few.
      assert.ok(counted.writes > 4, `${counted.writes} writes`);
      assert.deepEqual(counted.failures, []);
      assert.ok(counted.longestWaitMs < 15_000, `somebody waited ${counted.longestWaitMs} ms`);
    });

    it("readers keep their leases while their slot moves", async () => {
      const [name] = namesIn(1, 1, "kept") as [string];
      const home = await cluster.servers.primaryOf(keyFor(name));
      const away = await cluster.servers.primaryOf(keyFor(namesIn(0, 1)[0]!));
      const [ours, other] = await Promise.all(
        CLIENT_NAMES.map((client) => cluster.locks({ client })),
      );
      const readers = [
        await ours!.acquire(name, { mode: "shared", limit: 2, ttlMs: 5_000 }),
        await other!.acquire(name, { mode: "shared", limit: 2, ttlMs: 5_000 }),
      ];
      await moveSlot(slotOf(keyFor(name)), home, away);
      await sleep(6_000);
      assert.ok(readers.every((reader) => reader.held));
      assert.equal(await ours!.tryAcquire(name, { mode: "shared", limit: 2 }), null);
      for (const reader of readers) assert.equal(await reader.release(), "released");
      const writer = await ours!.acquire(name);
      assert.ok(writer.token > readers[1]!.token);
      await writer.release();
    });

    for (const client of clients) {
      it(`a waiter gets its push from the node to which its slot moved (${client})`, async () => {
        // Less than a heartbeat.
        await soon(700, async (attempt) => {
          const [name] = namesIn(0, 1, `heard-${client}-${attempt}-`) as [string];
          const home = await cluster.servers.primaryOf(keyFor(name));
          const away = await cluster.servers.primaryOf(keyFor(namesIn(2, 1)[0]!));
          const other = await cluster.locks();
          const held = await other.acquire(name);
          const waiting = (await cluster.locks({ client })).acquire(name, { waitMs: 60_000 });
          await until("it waits", async () => (await other.inspect(name)).waiters.length === 1);
          await moveSlot(slotOf(keyFor(name)), home, away);
          const target = cluster.node(away);
          const channel = `*{${tagOf(slotOf(keyFor(name)))}}`;
          const heard = async () =>
            (await target.call("PUBSUB", "SHARDCHANNELS", channel)) as string[];
          // One heartbeat learns of the move, and the next one subscribes there.
          await until("it listens there", async () => (await heard()).length === 1);
          const tookMs = await timed(async () => {
            await held.release();
            await waiting;
          });
          await (await waiting).release();
          return tookMs;
        });
      });
    }
  });
}

/** Tests locks whose primary hands over to its replica. */
export function checkHandOver(): void {
  describe("a Cluster whose primaries hand over", () => {
    before(async () => {
      cluster = await TestCluster.cluster();
    });
    after(async () => cluster[Symbol.asyncDispose]());

    it("an orderly hand-over of primaries costs no turn and no write", async () => {
      const [name] = namesIn(2, 1, "handed") as [string];
      const everybody = await Promise.all(
        threeClients().map((client) => cluster.locks({ client })),
      );
      const counted = await countWhile(everybody, name, TTL_MS, async () => {
        for (let i = 0; i < 3; i++) {
          await sleep(500);
          await handOver(cluster, name);
        }
      });
      assert.ok(
        counted.longestWaitMs < TTL_MS + 5_000,
        `somebody waited ${counted.longestWaitMs} ms`,
      );
    });
  });
}

function threeClients(): ClientName[] {
  return ["ioredis", "node-redis", "ioredis"];
}

/** Moves a slot as redis-cli does, but one key at a time, with a pause after each. */
async function moveSlot(slot: number, from: RedisServer, to: RedisServer): Promise<void> {
  const [source, target] = [cluster.node(from), cluster.node(to)];
  const [sourceId, targetId] = await Promise.all(
    [source, target].map(async (node) => String(await node.call("CLUSTER", "MYID"))),
  );
  const words = String(slot);
  await target.call("CLUSTER", "SETSLOT", words, "IMPORTING", sourceId!);
  await source.call("CLUSTER", "SETSLOT", words, "MIGRATING", targetId!);
  for (;;) {
    const [key] = (await source.call("CLUSTER", "GETKEYSINSLOT", words, "1")) as string[];
    if (key === undefined) break;
    await source.call("MIGRATE", "127.0.0.1", String(to.port), key, "0", "1000");
    await sleep(KEY_PAUSE_MS);
  }
  for (const node of [target, source]) {
    await node.call("CLUSTER", "SETSLOT", words, "NODE", targetId!);
  }
  source.disconnect();
  target.disconnect();
}
