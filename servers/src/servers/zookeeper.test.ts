import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
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
  const answer = () => server.command("ruok").catch((error: Error) => error.message);
  for (let tries = 0; tries < 100 && (await answer()) === "imok"; tries++) await sleep(50);
  assert.equal(await answer(), "no answer");
  server.resume();
  assert.equal(await server.command("ruok"), "imok");
  await server.restart();
  assert.notEqual(server.pid, pid);
  assert.equal(await server.command("ruok"), "imok");
  await server.stop();
  await assert.rejects(server.command("ruok"), { code: "ECONNREFUSED" });
  await server.stop();
});

const noMaps = process.platform === "linux" ? false : "only Linux shows what a process has mapped";

test("servers share an archive of their classes, which the first of them has made", {
  skip: noMaps,
}, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "templates-"));
  const usual = process.env.HOLDFAST_TEMPLATES;
  process.env.HOLDFAST_TEMPLATES = folder;
  t.after(() => {
    if (usual === undefined) delete process.env.HOLDFAST_TEMPLATES;
    else process.env.HOLDFAST_TEMPLATES = usual;
    rmSync(folder, { recursive: true });
  });
  const servers = [await startZooKeeper(), await startZooKeeper()];
  const maps = servers.map(({ pid }) => readFileSync(`/proc/${pid}/maps`, "utf8"));
  for (const server of servers) await server.stop();
  const made = readdirSync(folder);
  assert.deepEqual(
    made.map((name) => extname(name)),
    [".jsa"],
  );
  for (const mapped of maps) assert.ok(mapped.includes(join(folder, made[0]!)));
});

test("an ensemble elects a leader, and another one when that is killed", async () => {
  await using ensemble = await startZooKeeperEnsemble();
  const first = await ensemble.leader();
  assert.equal(ensemble.hosts.split(",").length, 3);
  await first.kill();
  const second = await ensemble.leader();
  assert.notEqual(second.port, first.port);
  await first.start();
  await ensemble.whole();
  // On a busy machine they may have elected once more; there is one leader in any case.
  const said = await Promise.all(ensemble.members.map((member) => member.command("srvr")));
  const modes = said.map((text) => /Mode: (\w+)/.exec(text)?.[1]).sort();
  assert.deepEqual(modes, ["follower", "follower", "leader"]);
});
