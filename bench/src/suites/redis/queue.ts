import { randomUUID } from "node:crypto";
import type { Redis } from "ioredis";
import type { Contender, ReleaseLock, Subject } from "../../measuring/suite.js";
import { RESOURCE, sitOut } from "../terms.js";
import { openIoredis } from "./clients.js";
import { UNCONTENDED } from "./terms.js";

// KEYS 1 lock 2 queue   ARGV 1 id of the asker, "process/number"  2 ttl in ms
const ACQUIRE = `
if redis.call("set", KEYS[1], ARGV[1], "NX", "PX", ARGV[2]) then return 1 end
redis.call("rpush", KEYS[2], ARGV[1])
return 0`;

// KEYS 1 lock 2 queue   ARGV 1 id of the holder  2 ttl in ms
const RELEASE = `
if redis.call("get", KEYS[1]) ~= ARGV[1] then return 0 end
local next = redis.call("lpop", KEYS[2])
if not next then return redis.call("del", KEYS[1]) end
redis.call("set", KEYS[1], next, "PX", ARGV[2])
redis.call("publish", string.match(next, "^[^/]+"), next)
return 1`;

/**
 * The least that a queue with pushed grants takes: one list, two scripts, one message. It does not
 * renew and does not recover: a dead waiter or a lost message stops it. It is a target, not a lock.
 */
export const queue: Contender = {
  id: "queue",
  name: "bare queue + push",
  ours: false,
  reach: "host",
  traces: { sends: ["evalsha", "eval"], key: (resource) => resource },
  sitsOut: sitOut(UNCONTENDED, "a mark for waiting, and nobody waits here"),
  async open({ url, ttlMs }): Promise<Subject> {
    const client = await openIoredis(url, false);
    const me = randomUUID();
    const waiting = await hear(client, me);
    const acquireSha = String(await client.script("LOAD", ACQUIRE));
    const releaseSha = String(await client.script("LOAD", RELEASE));
    let last = 0;
    return {
      async acquire(resource = RESOURCE): Promise<ReleaseLock> {
        const id = `${me}/${++last}`;
        const keys = [resource, `${resource}:queue`];
        // Registered before the call: the grant may arrive before the answer that says to wait.
        const granted = new Promise<void>((resolve) => waiting.set(id, resolve));
        const free = await client.evalsha(acquireSha, 2, ...keys, id, ttlMs);
        if (free === 1) waiting.delete(id);
        else await granted;
        return () => client.evalsha(releaseSha, 2, ...keys, id, ttlMs);
      },
    };
  },
};

/** Subscribes to grants. Returns the functions that wake waiters, by id. */
async function hear(client: Redis, channel: string): Promise<Map<string, () => void>> {
  const waiting = new Map<string, () => void>();
  const subscriber = client.duplicate();
  subscriber.on("message", (_channel, id) => {
    waiting.get(id)?.();
    waiting.delete(id);
  });
  await subscriber.subscribe(channel);
  return waiting;
}
