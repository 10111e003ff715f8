export { type ClusterServers, startCluster } from "./cluster.js";
export {
  type EtcdCluster,
  type EtcdOptions,
  type EtcdServer,
  ensureEtcdctl,
  startEtcd,
  startEtcdCluster,
} from "./etcd.js";
export { ensureBinary, ensurePython, findBinary, type Wanted } from "./install.js";
export { freePort, freePorts } from "./ports.js";
export { ServerProcess, type ServerSpec } from "./process.js";
export { type RedisOptions, type RedisServer, startRedis } from "./redis.js";
export { Relay } from "./relay.js";
export { type SentinelServers, startSentinel } from "./sentinel.js";
