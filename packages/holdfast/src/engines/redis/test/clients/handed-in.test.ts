// Clients for Sentinels and Clusters on which the program has its own settings or an open
// transaction.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { ClusterServers, SentinelServers } from "@holdfast/servers";
import type { Cluster, Redis } from "ioredis";
import {
  createCluster,
  createSentinel,
  type RedisClientType,
  type RedisClusterType,
  type RedisSentinelType,
} from "redis";
import { EngineError } from "../../../../errors.js";
import { Locks } from "../../../../locks.js";
import { until } from "../../../../test-support/until.fixture.js";
import { type RedisClient, redisEngine } from "../../index.js";
import { TestCluster } from "../support/test-cluster.fixture.js";
import type { ClientName } from "../support/test-server.fixture.js";

type Kind = "sentinel" | "cluster";

const clusters = {} as Record<Kind, TestCluster<SentinelServers> | TestCluster<ClusterServers>>;

before(async () => {
  [clusters.sentinel, clusters.cluster] = await Promise.all([
    TestCluster.sentinel(),
    TestCluster.cluster(),
  ]);
});
after(async () => {
  await Promise.all(Object.values(clusters).map((cluster) => cluster[Symbol.asyncDispose]()));
});

/** Sends a command on each connection that locks may use. */
const SENDERS: Readonly<Record<Kind, Readonly<Record<ClientName, Sender>>>> = {
  sentinel: {
    ioredis: (client, word) => (client as unknown as Redis).call(word),
    "node-redis": (client, word) =>
      (client as unknown as RedisSentinelType).sendCommand(false, [word]),
  },
  cluster: {
    ioredis: (client, word) =>
      Promise.all((client as unknown as Cluster).nodes("master").map((node) => node.call(word))),
    "node-redis": (client, word) => {
      const cluster = client as unknown as RedisClusterType;
      return Promise.all(
        cluster.masters.map(async (master) => {
          const node = (await cluster.nodeClient(master)) as unknown as RedisClientType;
          return node.sendCommand([word]);
        }),
      );
    },
  },
};

type Sender = (client: RedisClient, word: string) => Promise<unknown>;

for (const kind of ["sentinel", "cluster"] as const) {
  for (const name of ["ioredis", "node-redis"] as const) {
    describe(`a client of ${name} for a ${kind}`, () => {
      it("with an open transaction loses leases in time, and releases nothing", async () => {
        const { client, close } = await clusters[kind].topology.client(name);
        const other = await clusters[kind].locks();
        const send = SENDERS[kind][name];
        try {
          await using ours = new Locks(redisEngine({ client }));
          const names = Array.from({ length: 8 }, (_, i) => `${name}-${i}`);
          const terms = { ttlMs: 1_500, renewEveryMs: 400 };
          const leases = await Promise.all(names.map((one) => ours.acquire(one, terms)));
          const given = await ours.acquire(`${name}-given`);
          await send(client, "MULTI");
          await assert.rejects(
            given.release(),
            (error) => error instanceof EngineError && error.effect === "unknown",
          );
          assert.equal((await other.inspect(given.resource)).holders.length, 1);
          const nexts = await Promise.all(names.map((one) => other.acquire(one)));
          assert.ok(leases.every((lease) => !lease.held));
          await send(client, "DISCARD");
          for (const next of nexts) assert.equal(await next.release(), "released");
          const again = await ours.acquire(names[0]!, terms);
          await again.renew();
          assert.equal(await again.release(), "released");
        } finally {
          close();
        }
      });
    });
  }

  for (const replicas of [undefined, { wait: 1 }]) {
    const how = replicas === undefined ? "" : " and waits for replicas";
    it(`node-redis for a ${kind} that gives Buffers${how} gives our engine strings`, async () => {
      const options = replicas === undefined ? {} : { replicas };
      const client = mapped(kind);
      client.on("error", () => {});
      await client.connect();
      try {
        await using ours = new Locks(
          redisEngine({ client: client as unknown as RedisClient, ...options }),
        );
        const other = await clusters[kind].locks();
        const lease = await ours.acquire("mapped");
        await lease.renew();
        const waiting = ours.acquire("mapped", { fair: "strict" });
        await until("it waits", async () => (await other.inspect("mapped")).waiters.length === 1);
        assert.equal(await lease.release(), "released");
        const next = await waiting;
        assert.ok(await ours.check(next.sequencer));
        const listed = [];
        for await (const view of ours.list()) listed.push(view.resource);
        assert.ok(listed.includes("mapped"));
        assert.equal(await ours.revoke("mapped", { token: next.token }), "revoked");
        await next.release();
      } finally {
        await client.destroy();
      }
    });
  }
}

for (const kind of ["sentinel", "cluster"] as const) {
  it(`node-redis for a ${kind} that was never opened causes an error that says so`, async () => {
    const client = mapped(kind);
    client.on("error", () => {});
    await using locks = new Locks(redisEngine({ client: client as unknown as RedisClient }));
    await assert.rejects(locks.acquire("a"), (error: EngineError) => {
      assert.match(error.message, /is not open: await client\.connect\(\)/);
      assert.deepEqual([error.effect, error.retryable], ["none", false]);
      return true;
    });
  });
}

/** A client that gives Buffers for strings and strings for numbers, on each connection. */
function mapped(kind: Kind) {
  const settings = {
    commandOptions: { typeMapping: { 36: Buffer, 43: Buffer, 58: String, 61: Buffer } },
  };
  if (kind === "cluster") {
    const [port] = clusters.cluster.topology.ports;
    return createCluster({ rootNodes: [{ socket: { port: port! } }], ...settings });
  }
  const { name, sentinelPorts } = clusters.sentinel.servers as SentinelServers;
  return createSentinel({
    name,
    sentinelRootNodes: sentinelPorts.map((port) => ({ host: "127.0.0.1", port })),
    ...settings,
  });
}
