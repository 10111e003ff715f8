import { startEtcdCluster } from "@holdfast/servers";
import { checkInLanes } from "./laws.fixture.js";

checkInLanes("etcd of three members", 1, async () => {
  const cluster = await startEtcdCluster();
  return {
    ports: cluster.members.map(({ port }) => port),
    restart: async () => void (await Promise.all(cluster.members.map((one) => one.restart()))),
    stop: () => cluster.stop(),
  };
});
