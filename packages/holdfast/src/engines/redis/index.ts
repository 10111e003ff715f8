import type { Engine } from "../../engine.js";
import type { EngineUrl } from "../../url.js";
import { type RedisClient, seamOf } from "./client.js";
import { RedisEngine } from "./engine.js";
import { openFromUrl } from "./open.js";
import { type RedisEngineOptions, resolveRedis, termsFromUrl } from "./options.js";

export type {
  IoRedisClient,
  IoRedisSubscriber,
  NodeRedisClient,
  NodeRedisSubscriber,
  RedisClient,
} from "./client.js";
export { REDIS_DEFAULTS, type RedisEngineOptions } from "./options.js";

/** Locks on a Redis, through a client of node-redis or ioredis that you made. */
export function redisEngine({ client, ...options }: RedisEngineOptions): Engine {
  return new RedisEngine(seamOf(client), resolveRedis(options));
}

export async function redisFromUrl(url: EngineUrl): Promise<Engine> {
  const terms = termsFromUrl(url);
  const { client, close }: { client: RedisClient; close: () => void } = await openFromUrl(url);
  const engine = new RedisEngine(seamOf(client), terms, close);
  await engine.open();
  return engine;
}
