export { CURATOR_JARS, type Thing } from "./catalogue.js";
export { type ClusterServers, startCluster } from "./cluster.js";
export {
  type EtcdCluster,
  type EtcdOptions,
  type EtcdServer,
  startEtcd,
  startEtcdCluster,
} from "./etcd.js";
export { ensure, ensureAll, findBinary } from "./install.js";
export { LogGate } from "./log-gate.js";
export {
  innodbLog,
  isMysql,
  type MariadbOptions,
  type MariadbServer,
  startMariadb,
} from "./mariadb.js";
export { type PgbouncerOptions, type PgbouncerServer, startPgbouncer } from "./pgbouncer.js";
export { freePort, freePorts } from "./ports.js";
export { type PostgresOptions, type PostgresServer, startPostgres } from "./postgres.js";
export { allOrNone, ServerProcess, type ServerSpec } from "./process.js";
export { processorTimeUs } from "./processor-time.js";
export { type RedisOptions, type RedisServer, startRedis } from "./redis.js";
export { Relay } from "./relay.js";
export { type SentinelServers, startSentinel } from "./sentinel.js";
export { ShiftedClock } from "./shifted-clock.js";
export {
  type EnsembleOptions,
  startZooKeeper,
  startZooKeeperEnsemble,
  type ZooKeeperEnsemble,
  type ZooKeeperOptions,
  type ZooKeeperServer,
} from "./zookeeper.js";
