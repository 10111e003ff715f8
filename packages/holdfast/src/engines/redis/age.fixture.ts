import { keyOf, keysOf } from "./keys.js";
import { REDIS_DEFAULTS } from "./options.js";

// Lets a resource's grants end earlier, as if so much time had passed for it alone.
const AGE = `
  local ms, time = tonumber(ARGV[1]), redis.call('TIME')
  local all = redis.call('HGETALL', KEYS[4])
  for i = 1, #all, 2 do
    local head, ends, label = string.match(all[i + 1], '^(%d+:%d+:%d+:%d+:%d:%d+:)(%d+)(:.*)$')
    redis.call('HSET', KEYS[4], all[i], head .. string.format('%.0f', tonumber(ends) - ms) .. label)
  end
  local left = redis.call('PTTL', KEYS[1])
  if left >= 0 then
    if left > ms then redis.call('PEXPIRE', KEYS[1], left - ms) else redis.call('DEL', KEYS[1]) end
  end`;

/** The part of an ioredis Redis or Cluster that this needs. */
interface Evaluates {
  eval(script: string, keyCount: number, ...rest: string[]): Promise<unknown>;
}

export async function age(admin: Evaluates, resource: string, ms: number): Promise<void> {
  const keys = keysOf(keyOf(REDIS_DEFAULTS.prefix, resource));
  await admin.eval(AGE, keys.length, ...keys, String(ms));
}
