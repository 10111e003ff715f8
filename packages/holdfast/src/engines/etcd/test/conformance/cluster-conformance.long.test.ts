import { startEtcdCluster } from "@holdfast/servers";
import { checkOnShared } from "../support/laws.fixture.js";

checkOnShared("etcd of three members", 5, async () => {
  const cluster = await startEtcdCluster();
  return {
    ports: cluster.members.map(({ port }) => port),
    restart: async () => void (await Promise.all(cluster.members.map((one) => one.restart()))),
    stop: () => cluster.stop(),
  };
});
