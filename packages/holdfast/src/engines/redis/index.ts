import { refuseForeign } from "../../core/input/known-options.js";
import type { Engine } from "../../engine.js";
import type { EngineUrl } from "../../url.js";
import { addressOf } from "./clients/address.js";
import { adaptClient, isClient } from "./clients/connection.js";
import { openAddress } from "./clients/open.js";
import { RedisEngine } from "./engine.js";
import { OPTIONS, type RedisEngineOptions, resolveRedis, termsFromUrl } from "./options.js";

export type { RedisClient } from "./clients/connection.js";
export type {
  IoRedisClient,
  IoRedisClusterClient,
  IoRedisSubscriber,
} from "./clients/ioredis/ioredis-client.js";
export type {
  NodeRedisClient,
  NodeRedisClusterClient,
  NodeRedisSentinelClient,
  NodeRedisSubscriber,
} from "./clients/node-redis/node-redis-client.js";
export { REDIS_DEFAULTS, type RedisEngineOptions } from "./options.js";

/** Locks on Redis, through a client of node-redis or ioredis that you have made. */
export function redisEngine(options: RedisEngineOptions): Engine {
  refuseForeign(options, OPTIONS, "redisEngine", { option: "client", isOne: isClient });
  const { client, ...rest } = options;
  const terms = resolveRedis(rest);
  return new RedisEngine(adaptClient(client), terms);
}

export async function redisFromUrl(url: EngineUrl): Promise<Engine> {
  const terms = termsFromUrl(url);
  const { client, close } = await openAddress(addressOf(url));
  const engine = new RedisEngine(adaptClient(client), terms, close);
  await engine.open();
  return engine;
}
