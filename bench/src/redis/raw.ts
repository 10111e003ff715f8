import { randomBytes } from "node:crypto";
import type { Contender, Subject } from "../suite.js";
import { RESOURCE, sitOut } from "../terms.js";
import { openIoredis, openQuickNodeRedis } from "./clients.js";
import { CONTENDED } from "./terms.js";

const COMPARE_AND_DELETE =
  'if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0';

/** Two commands a cycle, and no more: what the client allows. */
interface RawClient {
  load(script: string): Promise<string>;
  setIfAbsent(key: string, value: string, ttlMs: number): Promise<unknown>;
  evalsha(sha: string, key: string, value: string): Promise<unknown>;
}

export const rawIoredis = raw("raw-ioredis", "raw ioredis", (url) => ioredis(url, false));

export const rawIoredisAuto = raw("raw-ioredis-auto", "raw ioredis, auto-pipelining", (url) =>
  ioredis(url, true),
);

export const rawNodeRedis = raw("raw-redis", "raw node-redis, no timeout", async (url) => {
  const client = await openQuickNodeRedis(url);
  return {
    load: (script) => client.scriptLoad(script),
    setIfAbsent: (key, value, ttlMs) =>
      client.sendCommand(["SET", key, value, "PX", String(ttlMs), "NX"]),
    evalsha: (sha, key, value) => client.sendCommand(["EVALSHA", sha, "1", key, value]),
  };
});

async function ioredis(url: string, autoPipelining: boolean): Promise<RawClient> {
  const client = await openIoredis(url, autoPipelining);
  return {
    load: async (script) => String(await client.script("LOAD", script)),
    setIfAbsent: (key, value, ttlMs) => client.set(key, value, "PX", ttlMs, "NX"),
    evalsha: (sha, key, value) => client.evalsha(sha, 1, key, value),
  };
}

function raw(id: string, name: string, open: (url: string) => Promise<RawClient>): Contender {
  return {
    id,
    name,
    ours: false,
    reach: "host",
    traces: { sends: ["set", "evalsha"], key: (resource) => resource },
    sitsOut: {
      ...(id === "raw-ioredis" ? {} : { growth: "one raw client is enough here" }),
      ...sitOut(CONTENDED, "two commands that do not wait"),
      ...sitOut(["renewal", "many-leases"], "two commands that do not renew"),
    },
    async open({ url, ttlMs }): Promise<Subject> {
      const client = await open(url);
      const sha = await client.load(COMPARE_AND_DELETE);
      return {
        async acquire(resource = RESOURCE) {
          const value = randomBytes(16).toString("hex");
          const answer = await client.setIfAbsent(resource, value, ttlMs);
          if (answer !== "OK") throw new Error(`${resource} is held, where nobody should wait`);
          return () => client.evalsha(sha, resource, value);
        },
      };
    },
  };
}
