import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { startCluster } from "./cluster.js";
import { redisCli } from "./redis-cli.js";

test("a cluster of three primaries and three replicas comes up, fails over, and leaves nothing behind", async () => {
  const cluster = await startCluster();
  try {
    assert.equal(cluster.nodes.length, 6);
    const primaries = new Set(
      await Promise.all(["a", "b", "c"].map((key) => cluster.primaryOf(key))),
    );
    assert.equal(primaries.size, 3, "these three keys live on three nodes");
    const first = await cluster.primaryOf("a");
    const replica = await cluster.replicaOf(first);
    assert.notEqual(replica, first);
    assert.equal((await redisCli(first.port, "SET", "a", "1")).trim(), "OK");
    assert.equal((await redisCli(first.port, "WAIT", "1", "20000")).trim(), "1");
    assert.match(await redisCli(replica.port, "SET", "a", "2"), /MOVED/);
    process.kill(first.pid, "SIGKILL");
    const second = await cluster.failedOver("a", first);
    assert.equal(second, replica);
    assert.equal((await redisCli(second.port, "GET", "a")).trim(), "1");
    assert.equal((await redisCli(second.port, "SET", "a", "2")).trim(), "OK");
  } finally {
    await cluster.stop();
  }
  for (const node of cluster.nodes) {
    assert.equal(existsSync(node.folder), false);
    await assert.rejects(redisCli(node.port, "PING"), /Could not connect|refused/i);
  }
  await cluster.stop();
});
