export { type CatalogueItem, CURATOR_JARS } from "./installing/catalogue.js";
export { ensure, ensureAll, findBinary } from "./installing/install.js";
export { LogGate } from "./running/log-gate.js";
export { freePort, freePorts } from "./running/ports.js";
export { allOrNone, ServerProcess, type ServerSpec } from "./running/process.js";
export { processorTimeUs } from "./running/processor-time.js";
export { Relay } from "./running/relay.js";
export { ShiftedClock } from "./running/shifted-clock.js";
export { type ClusterServers, startCluster } from "./servers/cluster.js";
export {
  type EtcdCluster,
  type EtcdOptions,
  type EtcdServer,
  startEtcd,
  startEtcdCluster,
} from "./servers/etcd.js";
export {
  innodbLog,
  isMysql,
  type MariadbOptions,
  type MariadbServer,
  startMariadb,
} from "./servers/mariadb.js";
export {
  type PgbouncerOptions,
  type PgbouncerServer,
  startPgbouncer,
} from "./servers/pgbouncer.js";
export { type PostgresOptions, type PostgresServer, startPostgres } from "./servers/postgres.js";
export { type RedisOptions, type RedisServer, startRedis } from "./servers/redis.js";
export { type SentinelServers, startSentinel } from "./servers/sentinel.js";
export {
  type EnsembleOptions,
  startZooKeeper,
  startZooKeeperEnsemble,
  type ZooKeeperEnsemble,
  type ZooKeeperOptions,
  type ZooKeeperServer,
} from "./servers/zookeeper.js";
