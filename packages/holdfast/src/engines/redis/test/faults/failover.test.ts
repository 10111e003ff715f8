// A primary with two replicas, watched by Sentinels, that fails.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { SentinelServers } from "@holdfast/servers";
import { Redis } from "ioredis";
import { connect } from "../../../../connect.js";
import { exponential } from "../../../../core/acquiring/retry.js";
import { channels } from "../../../../events.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { redisEngine } from "../../index.js";
import { crash, TestCluster } from "../support/test-cluster.fixture.js";
import { CLIENT_NAMES } from "../support/test-server.fixture.js";

const TTL_MS = 30_000;
/** A call to a server that is gone may get no answer, so it is repeated after a short timeout. */
const TERMS = { ttlMs: TTL_MS, callTimeoutMs: 1_000 };
const retry = () => exponential({ minMs: 50, maxMs: 500 });

let cluster: TestCluster<SentinelServers>;

before(async () => {
  cluster = await TestCluster.sentinel();
});
after(async () => cluster[Symbol.asyncDispose]());

describe("a primary that fails", () => {
  it("is reported by the Sentinels to the user's client, not to each connection of the engine", async () => {
    const { sentinelPorts, name } = cluster.servers;
    const sentinels = sentinelPorts.map((port) => ({ host: "127.0.0.1", port }));
    const sentinel = cluster.node({ port: sentinelPorts[0]! });
    const listeners = async () =>
      String(await sentinel.call("CLIENT", "LIST")).match(/ sub=1 /g)?.length ?? 0;
    assert.equal(await listeners(), 0);
    const client = new Redis({ sentinels, name, failoverDetector: true });
    client.on("error", () => {});
    const engine = redisEngine({ client, replicas: { wait: 1 } });
    try {
      await client.ping();
      await until("it listens", async () => (await listeners()) === 1);
      assert.equal((await engine.tryAcquire(claim("told"), now())).kind, "granted");
      assert.equal((await engine.queue!.enqueue(claim("told"), now())).kind, "queued");
      assert.equal(await listeners(), 1);
    } finally {
      await engine.close();
      client.disconnect();
    }
  });

  it("is asked again by a client that is just connecting", async () => {
    const node = cluster.node(await cluster.servers.primary());
    // The server refuses connections, like one that is gone or still starting.
    await node.config("SET", "maxclients", "1");
    const refused = nextFailure();
    const connecting = connect(cluster.topology.url);
    try {
      await Promise.race([refused, connecting]);
    } finally {
      await node.config("SET", "maxclients", "10000");
    }
    await using locks = await connecting;
    await (await locks.acquire("a")).release();
  });

  it("loses no lease that replicas have, and no place in a queue; tokens rise", async () => {
    const primary = await cluster.servers.primary();
    await using byUrl = await connect(cluster.topology.url);
    const everybody = [
      byUrl,
      ...(await Promise.all(CLIENT_NAMES.map((client) => cluster.locks({ client })))),
    ];
    const lives = await Promise.all(
      everybody.map(async (ours, i) => {
        const other = everybody[(i + 1) % everybody.length]!;
        const name = `kept-${i}`;
        const lease = await ours.acquire(name, TERMS);
        const waiting = other.acquire(name, { ...TERMS, waitMs: 60_000, retry: retry() });
        await until("it waits", async () => (await ours.inspect(name)).waiters.length === 1);
        return { name, ours, lease, waiting };
      }),
    );
    crash(primary);
    await cluster.servers.failedOver(primary);
    await Promise.all(
      lives.map(async ({ name, lease, waiting }) => {
        const renewed = () =>
          lease.renew().then(
            () => true,
            () => !lease.held,
          );
        await until(`${name} is renewed or lost`, renewed, TTL_MS + 2_000);
        assert.ok(lease.held, `lost although replicas had it: ${lease.signal.reason}`);
        await lease.release();
        const next = await waiting;
        assert.ok(next.token > lease.token, `${next.token} came after ${lease.token}`);
        await next.release();
      }),
    );
  });
});

/** Resolves when a connection is refused. */
function nextFailure(): Promise<void> {
  return new Promise((resolve) => {
    const hear = (event: unknown) => {
      if ((event as { during: string }).during !== "connection") return;
      channels.failed.unsubscribe(hear);
      resolve();
    };
    channels.failed.subscribe(hear);
  });
}
