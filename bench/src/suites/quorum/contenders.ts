import { quorumEngine } from "holdfast/quorum";
import { redisEngine } from "holdfast/redis";
import { Redis } from "ioredis";
// @ts-expect-error The map of its exports hides its types.
import Redlock from "redlock";
import type { Contender, OpenContext, ReleaseLock, Subject } from "../../measuring/suite.js";
import { holdfast } from "../holdfast.js";
import { RESOURCE } from "../terms.js";
import { DOWN_PREFIX, membersOf } from "./members.js";

const TRACES = {
  sends: ["evalsha", "eval"],
  key: (resource: string) => `holdfast:${resource}`,
};

export const five = holdfast("quorum", "holdfast, five nodes", TRACES, (context) =>
  quorumEngine({ nodes: clientsOf(context, "five") }),
);

export const oneDown = holdfast("one-down", "holdfast, one of five stopped", TRACES, (context) =>
  quorumEngine({ nodes: clientsOf(context, "one-down"), prefix: DOWN_PREFIX }),
);

/** What it costs on one of these servers alone. */
export const single = holdfast("single", "holdfast, one Redis", TRACES, (context) =>
  redisEngine({ client: clientsOf(context, "five")[0]!.client }),
);

/** With the pauses of its defaults: 200 ms, give or take 100. */
export const redlock: Contender = {
  ...{ id: "redlock", name: "redlock 5 beta, five nodes", ours: false, reach: "host" },
  traces: { sends: ["evalsha", "eval"], key: (resource) => resource },
  async open(context): Promise<Subject> {
    const clients = clientsOf(context, "five").map(({ client }) => client);
    const locks = new Redlock(clients) as {
      acquire(names: string[], ttlMs: number, settings: object): Promise<{ release: ReleaseLock }>;
    };
    return {
      async acquire(resource = RESOURCE) {
        const lock = await locks.acquire([resource], context.ttlMs, { retryCount: -1 });
        return () => lock.release();
      },
    };
  },
};

function clientsOf({ url }: OpenContext, which: "five" | "one-down") {
  return membersOf(url, which).map(({ name, port }) => {
    const client = new Redis(port);
    client.on("error", () => {});
    return { name, client };
  });
}
