import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { startZooKeeper, startZooKeeperEnsemble } from "./zookeeper.js";

test("a ZooKeeper answers, can be paused, restarted and stopped", async () => {
  // A test that fails must not leave a server behind, for which its process would wait.
  await using server = await startZooKeeper();
  const { pid } = server;
  assert.equal(await server.command("ruok"), "imok");
  assert.equal(await server.metric("zk_watch_count"), 0);
  await assert.rejects(server.metric("zk_nonsense"), /mntr has no/);
  server.pause();
  // The signal reaches a process of many threads a moment after it was sent.
  await sleep(100);
  await assert.rejects(server.command("ruok"), /no answer/);
  server.resume();
  assert.equal(await server.command("ruok"), "imok");
  await server.restart();
  assert.notEqual(server.pid, pid);
  assert.equal(await server.command("ruok"), "imok");
  await server.stop();
  await assert.rejects(server.command("ruok"), { code: "ECONNREFUSED" });
  await server.stop();
});

test("an ensemble elects a leader, and another one when that is killed", async () => {
  await using ensemble = await startZooKeeperEnsemble();
  const first = await ensemble.leader();
  assert.equal(ensemble.hosts.split(",").length, 3);
  await first.kill();
  const second = await ensemble.leader();
  assert.notEqual(second.port, first.port);
  await first.start();
  assert.match(await first.command("srvr"), /Mode: follower/);
  await ensemble.whole();
  for (const member of ensemble.members) {
    assert.match(await member.command("srvr"), /Mode: (leader|follower)/);
  }
});
