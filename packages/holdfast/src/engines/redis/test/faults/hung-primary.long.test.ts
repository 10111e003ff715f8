// A Cluster primary that hangs keeps its connections and answers nothing, so clients do not learn
// that another node has taken its place.
import assert from "node:assert/strict";
import { test } from "node:test";
import { exponential } from "../../../../core/acquiring/retry.js";
import { until } from "../../../../test-support/until.fixture.js";
import { keyFor, namesIn, shardOf } from "../support/shards.fixture.js";
import { TestCluster } from "../support/test-cluster.fixture.js";
import { CLIENT_NAMES } from "../support/test-server.fixture.js";

const OPTIONS = { waitMs: 30_000, callTimeoutMs: 1_500 };
const ENOUGH_MS = 30_000;
const retry = () => exponential({ minMs: 50, maxMs: 200 });

test("a Cluster primary that hangs and is replaced costs its clients some tries, and no more", async () => {
  await using cluster = await TestCluster.cluster();
  const names = namesIn(0, CLIENT_NAMES.length * 2);
  const [primary, replica] = await shardOf(cluster, names[0]!);
  const everybody = await Promise.all(
    names.map(async (name, i) => {
      const replicas = i < CLIENT_NAMES.length ? null : { replicas: 1, timeoutMs: 500 };
      const client = CLIENT_NAMES[i % CLIENT_NAMES.length]!;
      const locks = await cluster.locks({ client, replicas });
      const first = await locks.acquire(name, { ...OPTIONS, retry: retry() });
      await first.release();
      return { name, client, locks, replicas, first };
    }),
  );
  primary.pause();
  try {
    assert.equal(await cluster.servers.failedOver(keyFor(names[0]!), primary), replica);
    await Promise.all(
      everybody.map(async ({ name, client, locks, replicas, first }) => {
        if (replicas === null) {
          const lease = await locks.acquire(name, { ...OPTIONS, retry: retry() });
          assert.ok(lease.token > first.token);
          await lease.release();
        } else {
          // The new primary has no replica, so its answer is this error.
          const refused = () =>
            locks.acquire(name, OPTIONS).then(
              () => assert.fail("it was granted without a replica"),
              ({ message }) => /^0 of/.test(message),
            );
          await until(`${client} reaches the new primary`, refused, ENOUGH_MS);
        }
      }),
    );
  } finally {
    primary.resume();
  }
});
