import { UsageError } from "../../../../errors.js";
import type { RedisConnection } from "../connection.js";
import { adaptCluster } from "./adapt-cluster.js";
import { adaptSingle } from "./adapt-single.js";
import type { IoRedisClient, IoRedisClusterClient } from "./ioredis-client.js";

export function adaptIoRedis(client: IoRedisClient | IoRedisClusterClient): RedisConnection {
  refuseKeyPrefix(client.options);
  return "isCluster" in client && client.isCluster
    ? adaptCluster(client)
    : adaptSingle(client as IoRedisClient);
}

/**
 * ioredis puts a keyPrefix before some names but not all: locks would be neither listed nor pushed.
 */
function refuseKeyPrefix(options: IoRedisClusterClient["options"]): void {
  const prefix = options?.keyPrefix || options?.redisOptions?.keyPrefix;
  if (!prefix) return;
  throw new UsageError(
    `the client has keyPrefix ${JSON.stringify(prefix)}; use a client without one, ` +
      "and give the engine a prefix instead",
  );
}
