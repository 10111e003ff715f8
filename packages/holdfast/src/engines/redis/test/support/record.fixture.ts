import type { TrueGrant } from "../../../../conformance/harness.js";
import { REDIS_DEFAULTS } from "../../options.js";
import { keyOf, keysOf } from "../../protocol/keys.js";

// Makes a resource's grants end earlier, as if this much time had passed for it alone.
const AGE = `
  local ms, time = tonumber(ARGV[1]), redis.call('TIME')
  local all = redis.call('HGETALL', KEYS[4])
  for i = 1, #all, 2 do
    local head, ends, label = string.match(all[i + 1], '^(%d+:%d+:%d+:%d+:%d:%d+:)(%d+)(:.*)$')
    redis.call('HSET', KEYS[4], all[i], head .. string.format('%.0f', tonumber(ends) - ms) .. label)
    redis.call('ZINCRBY', KEYS[7], -ms, all[i])
  end
  local left = redis.call('PTTL', KEYS[1])
  if left >= 0 then
    if left > ms then redis.call('PEXPIRE', KEYS[1], left - ms) else redis.call('DEL', KEYS[1]) end
  end`;

// Makes a resource's tombstones end earlier.
const AGE_TOMBSTONES = `
  local ms = tonumber(ARGV[1])
  for _, id in ipairs(redis.call('ZRANGE', KEYS[6], 0, -1)) do
    redis.call('ZINCRBY', KEYS[6], -ms, id)
  end
  local left = redis.call('PTTL', KEYS[6])
  if left >= 0 then redis.call('PEXPIRE', KEYS[6], left - ms) end`;

// Makes the last heartbeats of a resource's waiters older.
const SILENCE = `
  local all = redis.call('HGETALL', KEYS[3])
  for i = 1, #all, 2 do
    local head, heard, rest =
      string.match(all[i + 1], '^([xs]:%d+:%d+:%d+:%d+:%d+:)(%d+)(:.*)$')
    if head then
      redis.call('HSET', KEYS[3], all[i], head .. string.format('%.0f', heard - ARGV[1]) .. rest)
    end
  end`;

// The grants that block others now: first token and ms left, at one instant.
const TRUTH = `
  local value, found = redis.call('GET', KEYS[1]), {}
  if not value then return found end
  local delay, token = string.match(value, '^hf:x:%x+:(%d+):%d:%d+:%d+:%d+:(%d+):')
  if token then return { { token, redis.call('PTTL', KEYS[1]) - delay } } end
  local time, all = redis.call('TIME'), redis.call('HGETALL', KEYS[4])
  for i = 1, #all, 2 do
    local token, ends = string.match(all[i + 1], '^(%d+):%d+:%d+:%d+:%d:%d+:(%d+):')
    local left = ends - time[1] * 1000 - math.floor(time[2] / 1000)
    if left > 0 then found[#found + 1] = { token, left } end
  end
  return found`;

/** The part of an ioredis Redis or Cluster that this needs. */
interface Evaluates {
  eval(script: string, keyCount: number, ...rest: string[]): Promise<unknown>;
}

function ask(admin: Evaluates, script: string, resource: string, ...args: string[]) {
  const keys = keysOf(keyOf(REDIS_DEFAULTS.prefix, resource));
  return admin.eval(script, keys.length, ...keys, ...args);
}

export async function age(admin: Evaluates, resource: string, ms: number): Promise<void> {
  await ask(admin, AGE, resource, String(ms));
}

export async function ageTombstones(admin: Evaluates, resource: string, ms: number): Promise<void> {
  await ask(admin, AGE_TOMBSTONES, resource, String(ms));
}

export async function silence(admin: Evaluates, resource: string, ms: number): Promise<void> {
  await ask(admin, SILENCE, resource, String(ms));
}

/** Read from the records alone. The server rounds times up to whole milliseconds. */
export async function truth(admin: Evaluates, resource: string): Promise<TrueGrant[]> {
  const found = (await ask(admin, TRUTH, resource)) as [string, number][];
  return found.map(([token, remainingMs]) => ({ token: BigInt(token), remainingMs }));
}
