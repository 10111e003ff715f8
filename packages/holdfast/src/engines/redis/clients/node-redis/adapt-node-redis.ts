import type { RedisConnection } from "../connection.js";
import { adaptCluster } from "./adapt-cluster.js";
import { adaptSentinel } from "./adapt-sentinel.js";
import { adaptSingle } from "./adapt-single.js";
import type {
  NodeRedisClient,
  NodeRedisClusterClient,
  NodeRedisSentinelClient,
} from "./node-redis-client.js";

export function adaptNodeRedis(
  client: NodeRedisClient | NodeRedisSentinelClient | NodeRedisClusterClient,
): RedisConnection {
  if ("nodeClient" in client) return adaptCluster(client);
  return "getMasterNode" in client ? adaptSentinel(client) : adaptSingle(client);
}
