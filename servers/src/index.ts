export { type ClusterServers, startCluster } from "./cluster.js";
export { ensureBinary, ensureFile, ensurePython, findBinary, type Wanted } from "./install.js";
export { freePort, freePorts } from "./ports.js";
export { ServerProcess, type ServerSpec } from "./process.js";
export { type RedisOptions, type RedisServer, startRedis } from "./redis.js";
export { Relay } from "./relay.js";
export { type SentinelServers, startSentinel } from "./sentinel.js";
export {
  type EnsembleOptions,
  startZooKeeper,
  startZooKeeperEnsemble,
  type ZooKeeperEnsemble,
  type ZooKeeperOptions,
  type ZooKeeperServer,
} from "./zookeeper.js";
