import { randomBytes } from "node:crypto";
import type { Redis } from "ioredis";
import type { Contender, Subject } from "../../measuring/suite.js";
import { RESOURCE, sitOut } from "../terms.js";
import { openIoredis, openQuickNodeRedis } from "./clients.js";
import { CONTENDED } from "./terms.js";

const COMPARE_AND_DELETE =
  'if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0';

/** The least that gives a token which rises whatever the clock does. */
const SET_WITH_TOKEN = `
  local time = redis.call("time")
  local now = time[1] .. string.sub("00000" .. time[2], -6)
  local last = redis.call("get", KEYS[2])
  local token = last and last >= now and string.format("%.0f", last + 1) or now
  if not redis.call("set", KEYS[1], ARGV[1], "nx", "px", ARGV[2]) then return false end
  redis.call("set", KEYS[2], token, "px", 60000)
  return token`;

/** Two commands a cycle: the fastest that the client allows. */
interface RawClient {
  load(script: string): Promise<string>;
  setIfAbsent(key: string, value: string, ttlMs: number): Promise<unknown>;
  evalsha(sha: string, key: string, value: string): Promise<unknown>;
}

export const rawIoredis = raw("raw-ioredis", "raw ioredis", (url) => ioredis(url, false));

export const rawIoredisAuto = raw("raw-ioredis-auto", "raw ioredis, auto-pipelining", (url) =>
  ioredis(url, true),
);

/**
 * Shows the cost of a script with a token instead of two bare commands. The rest is the library's
 * cost.
 */
export const rawToken = raw(
  "raw-token",
  "raw ioredis, script with a token",
  async (url) => {
    const client = await openIoredis(url, false);
    const sha = String(await client.script("LOAD", SET_WITH_TOKEN));
    return {
      ...commands(client),
      setIfAbsent: async (key, value, ttlMs) => {
        const token = await client.evalsha(sha, 2, key, `{${key}}:fence`, value, ttlMs);
        return token === null ? null : "OK";
      },
    };
  },
  ["evalsha"],
);

/** Keeps the event loop turning until the answer arrives, as our engine does when it spins. */
export const rawAwake = raw("raw-awake", "raw ioredis, awake", async (url) => {
  const { load, setIfAbsent, evalsha } = await ioredis(url, false);
  return {
    load,
    setIfAbsent: (...given) => awake(setIfAbsent(...given)),
    evalsha: (...given) => awake(evalsha(...given)),
  };
});

export const rawNodeRedis = raw("raw-redis", "raw node-redis, no timeout", async (url) => {
  const client = await openQuickNodeRedis(url);
  return {
    load: (script) => client.scriptLoad(script),
    setIfAbsent: (key, value, ttlMs) =>
      client.sendCommand(["SET", key, value, "PX", String(ttlMs), "NX"]),
    evalsha: (sha, key, value) => client.sendCommand(["EVALSHA", sha, "1", key, value]),
  };
});

async function awake<T>(answer: Promise<T>): Promise<T> {
  let isThere = false;
  const turn = () => {
    if (!isThere) setImmediate(turn);
  };
  turn();
  try {
    return await answer;
  } finally {
    isThere = true;
  }
}

async function ioredis(url: string, autoPipelining: boolean): Promise<RawClient> {
  return commands(await openIoredis(url, autoPipelining));
}

function commands(client: Redis): RawClient {
  return {
    load: async (script) => String(await client.script("LOAD", script)),
    setIfAbsent: (key, value, ttlMs) => client.set(key, value, "PX", ttlMs, "NX"),
    evalsha: (sha, key, value) => client.evalsha(sha, 1, key, value),
  };
}

function raw(
  id: string,
  name: string,
  open: (url: string) => Promise<RawClient>,
  sends: readonly string[] = ["set", "evalsha"],
): Contender {
  return {
    id,
    name,
    ours: false,
    reach: "host",
    traces: { sends, key: (resource) => resource },
    sitsOut: {
      ...(id === "raw-ioredis" ? {} : { growth: "one raw client is enough here" }),
      ...(id === "raw-awake" ? { distinct: "with 64 at once nobody sleeps" } : {}),
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
