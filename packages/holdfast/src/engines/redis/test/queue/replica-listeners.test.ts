// A replica forwards what its primary publishes to its own listeners. The primary does not count
// them, so the next waiter is promoted. It must be the only one that hears of a grant.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Engine } from "../../../../engine.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { handOver } from "../support/shards.fixture.js";
import { TestCluster } from "../support/test-cluster.fixture.js";
import { CLIENT_NAMES, PROMPT, RedisTestServer } from "../support/test-server.fixture.js";

const HEARD_MS = 300;

describe("a waiter that listens at a replica", { concurrency: 1 }, () => {
  for (const client of CLIENT_NAMES) {
    it(`is passed over, and hears of no grant that it did not get (${client})`, async () => {
      await using redis = await RedisTestServer.start(PROMPT);
      const [replica] = await redis.replicas(1);
      const aside = redis.engine({ client, pushPort: replica!.port });
      await checkPassedOver(aside, redis.engine());
    });
  }

  it("hears of no such grant on a Cluster either, where it listens to a former primary", async () => {
    await using cluster = await TestCluster.cluster();
    for (const client of CLIENT_NAMES) {
      const aside = await cluster.engine({ client });
      await aside.inspect("a");
      const former = await cluster.servers.primaryOf("holdfast:a");
      await handOver(cluster, "a");
      await until("the former primary follows", async () =>
        /^slave.*connected/.test(String(await cluster.node(former).call("ROLE"))),
      );
      await checkPassedOver(aside, await cluster.engine({ client }), async () => {
        const channels = (await cluster.node(former).call("PUBSUB", "SHARDCHANNELS")) as string[];
        assert.equal(channels.length, 1, "it listens somewhere else, so this test proves nothing");
      });
      await cluster.topology.reset();
    }
  });
});

describe("connections of a client that does not reconnect", { concurrency: 2 }, () => {
  for (const client of CLIENT_NAMES) {
    it(`are opened again when they are needed (${client})`, async () => {
      await using redis = await RedisTestServer.start(PROMPT);
      await redis.replicas(1);
      const replicas = { wait: 1, timeoutMs: 3_000 };
      const ours = redis.engine({ client, givesUp: true, replicas });
      const other = redis.engine();
      assert.equal((await ours.tryAcquire(claim("warm up"), now())).kind, "granted");
      const held = claim("a");
      assert.equal((await other.tryAcquire(held, now())).kind, "granted");
      await until("both listen", async () => (await listeners(redis)) === 2);
      await redis.admin.call("CLIENT", "KILL", "TYPE", "pubsub");
      for (const id of await waitingConnections(redis)) await redis.admin.client("KILL", "ID", id);
      const waiter = claim("a");
      let pushed = false;
      ours.queue!.onGrant(() => {
        pushed = true;
      });
      const stands = async () => (await ours.queue!.enqueue(waiter, now())).kind === "queued";
      await until("it is queued", () => stands().catch(() => false));
      const hears = async () => {
        await ours.queue!.heartbeat([waiter], now());
        return (await listeners(redis)) === 2;
      };
      await until("it listens again", hears);
      await other.release([{ ...held, tombstoneMs: 0 }], now());
      await until("it is granted", () => pushed);
    });
  }
});

/** How many processes listen for grants. */
async function listeners(redis: RedisTestServer): Promise<number> {
  return ((await redis.admin.pubsub("CHANNELS", "holdfast.push.*")) as string[]).length;
}

/** The connections whose last command was CLIENT INFO, as it is on those that wait for replicas. */
async function waitingConnections(redis: RedisTestServer): Promise<string[]> {
  const list = String(await redis.admin.call("CLIENT", "LIST"));
  const ids = [...list.matchAll(/^id=(\d+) .* cmd=client\|info /gm)].map(([, id]) => id!);
  assert.equal(ids.length, 1);
  return ids;
}

/** `aside` waits before `other`. When the holder releases, only `other` may be granted. */
async function checkPassedOver(
  aside: Engine,
  other: Engine,
  check = async () => {},
): Promise<void> {
  const [held, first, second] = [claim("a"), claim("a"), claim("a")];
  const pushed: string[] = [];
  for (const engine of [aside, other]) {
    engine.queue!.onGrant(({ grantId }) => void pushed.push(grantId));
  }
  assert.equal((await other.tryAcquire(held, now())).kind, "granted");
  assert.equal((await aside.queue!.enqueue(first, now())).kind, "queued");
  await check();
  assert.equal((await other.queue!.enqueue(second, now())).kind, "queued");
  await other.release([{ ...held, tombstoneMs: 0 }], now());
  await until("the next one is granted", () => pushed.includes(second.grantId));
  await sleep(HEARD_MS);
  assert.deepEqual(pushed, [second.grantId]);
  // The first one kept its place, and its heartbeat gets it the grant.
  await other.release([{ ...second, tombstoneMs: 0 }], now());
  const [answer] = await aside.queue!.heartbeat([first], now());
  assert.equal(answer?.kind, "granted");
}
