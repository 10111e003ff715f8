// Law L22 on a cluster of three.
import { after, before, describe, it } from "node:test";
import { type EtcdCluster, startEtcdCluster } from "@holdfast/servers";
import { checkLaws, type Survival } from "../../../../conformance/index.js";
import { Lane } from "../support/harness.fixture.js";

let cluster: EtcdCluster;
const lane = new Lane(async () => {
  const ports = cluster.members.map(({ port }) => port);
  return { ports, restart: async () => {}, stop: () => cluster.stop() };
});

before(async () => {
  cluster = await startEtcdCluster();
  await lane.start();
});
after(() => lane.stop());

const members: Survival["members"] = [0, 1, 2].map((i) => ({
  name: `member ${i}`,
  hang: () => cluster.members[i]!.pause(),
  resume: async () => {
    cluster.members[i]!.resume();
    await cluster.leader();
  },
  restart: async () => {
    await cluster.members[i]!.restart();
    await cluster.leader();
  },
}));
// A leader that hung for longer than a lease lives revokes it when it is back (etcd-io/etcd#15247).
const survival: Survival = { ttlMs: 5_000, hangMs: 3_000, members };

describe("etcd of three members", { concurrency: 1 }, () => {
  checkLaws({ ...lane.harness(), survival }, (title, run) => {
    if (title.startsWith("L22.")) it(title, run);
  });
});
