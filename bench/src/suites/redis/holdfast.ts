import { type RedisClient, redisEngine } from "holdfast/redis";
import type { Contender, OpenContext } from "../../measuring/suite.js";
import { holdfast } from "../holdfast.js";
import { sitOut } from "../terms.js";
import { openIoredis, openNodeRedis } from "./clients.js";
import { ALL_BUT_SEQUENTIAL, SHORT_OF_WAITERS } from "./terms.js";

const TRACES = {
  sends: ["evalsha", "eval"],
  key: (resource: string) => `holdfast:${resource}`,
};

// The engine puts together by itself what comes at once: it needs nothing from the client.
const onIoredis = engineOn(({ url }) => openIoredis(url, false));
const onNodeRedis = engineOn(({ url }) => openNodeRedis(url));

export const holdfastIoredis = holdfast("holdfast-ioredis", "holdfast, ioredis", TRACES, onIoredis);
export const holdfastNodeRedis = holdfast(
  ...(["holdfast-redis", "holdfast, node-redis", TRACES, onNodeRedis] as const),
);

/** Parks at once, where the others spin first. */
export const holdfastParked: Contender = {
  ...holdfast("holdfast-parked", "holdfast, ioredis, no spin", TRACES, async ({ url, idleMs }) =>
    redisEngine({ client: await openIoredis(url, false), idleMs, spin: false }),
  ),
  sitsOut: sitOut(ALL_BUT_SEQUENTIAL, "only one at a time does the engine spin"),
};

/** Without the cohort: in the order of arrival at the server. */
export const holdfastStrict: Contender = {
  ...holdfast("holdfast-strict", "holdfast, strict", TRACES, onIoredis, { fair: "strict" }),
  sitsOut: sitOut(SHORT_OF_WAITERS, "nobody here has a neighbour to pass a lease to"),
};

function engineOn(open: (context: OpenContext) => Promise<RedisClient>) {
  return async (context: OpenContext) =>
    redisEngine({ client: await open(context), idleMs: context.idleMs });
}
