import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { ensure } from "../installing/install.js";
import { type EtcdServer, startEtcd, startEtcdCluster } from "./etcd.js";

test("an etcd keeps its data across a kill, and stop leaves neither process nor folder", async () => {
  const etcd = await startEtcd();
  const { pid, folder } = etcd;
  ctl([etcd], "put", "a", "1");
  await etcd.restart();
  assert.notEqual(etcd.pid, pid);
  assert.match(ctl([etcd], "get", "a"), /^a\n1$/);
  const last = etcd.pid;
  await etcd.stop();
  assert.throws(() => process.kill(last, 0), { code: "ESRCH" });
  assert.equal(existsSync(folder), false);
  await etcd.stop();
});

test("a paused etcd answers nothing until it is resumed", async () => {
  await using etcd = await startEtcd();
  etcd.pause();
  assert.throws(() => ctl([etcd], "--command-timeout=300ms", "get", "a"));
  etcd.resume();
  assert.equal(ctl([etcd], "get", "a"), "");
});

test("a cluster elects another leader when its leader is killed, and takes it back", async () => {
  await using cluster = await startEtcdCluster();
  const first = await cluster.leader();
  const rest = cluster.members.filter((member) => member !== first);
  ctl(rest, "put", "a", "1");
  await first.kill();
  const second = await cluster.leader();
  assert.notEqual(second, first);
  ctl(rest, "put", "a", "2");
  await first.start();
  assert.match(ctl([first], "get", "a"), /^a\n2$/);
  await Promise.all(cluster.members.map((member) => member.restart()));
  assert.match(ctl(cluster.members, "get", "a"), /^a\n2$/);
});

function ctl(members: readonly EtcdServer[], ...args: string[]): string {
  const endpoints = members.map(({ port }) => `127.0.0.1:${port}`).join(",");
  return execFileSync(ensure("etcdctl"), [`--endpoints=${endpoints}`, ...args], {
    encoding: "utf8",
    env: { ...process.env, ETCDCTL_API: "3" },
    stdio: ["ignore", "pipe", "pipe"],
  }).trim();
}
