import { Redlock as SesameRedlock } from "@sesamecare-oss/redlock";
import type { Redis } from "ioredis";
// @ts-expect-error The map of its exports hides its types.
import Redlock from "redlock";
import type { Contender, ReleaseLock, Subject } from "../../measuring/suite.js";
import { RESOURCE } from "../terms.js";
import { ioredisFor } from "./clients.js";
import { PEER_SITS_OUT, TUNED_SITS_OUT } from "./terms.js";

/** What both editions of it have in common. */
interface Edition {
  acquire(names: string[], ttlMs: number, settings: object): Promise<{ release: ReleaseLock }>;
  using(names: string[], ttlMs: number, work: () => Promise<void>): Promise<void>;
}

const original = (client: Redis) => new Redlock([client]) as Edition;
const sesame = (client: Redis) => new SesameRedlock([client]) as Edition;

/** With the pauses of its defaults: 200 ms, give or take 100. */
export const redlock = edition("redlock", "redlock 5 beta", original, {});
export const sesameRedlock = edition("sesamecare", "@sesamecare-oss/redlock", sesame, {});

export const redlockEvery10: Contender = {
  ...edition("redlock-10ms", "redlock, every 10 ms", original, {
    ...{ retryDelay: 10, retryJitter: 5 },
  }),
  sitsOut: TUNED_SITS_OUT,
};

function edition(
  id: string,
  name: string,
  make: (client: Redis) => Edition,
  pauses: object,
): Contender {
  return {
    id,
    name,
    ours: false,
    reach: "host",
    traces: { sends: ["evalsha", "eval"], key: (resource) => resource },
    sitsOut: PEER_SITS_OUT,
    async open(context): Promise<Subject> {
      const locks = make(await ioredisFor(context));
      // For ever. Only when acquiring: a release that retries for ever would never end.
      const settings = { retryCount: -1, ...pauses };
      return {
        async acquire(resource = RESOURCE) {
          const lock = await locks.acquire([resource], context.ttlMs, settings);
          return () => lock.release();
        },
        keep: (resource) =>
          new Promise((resolve, reject) => {
            const used = locks.using([resource], context.ttlMs, () => {
              return new Promise((done) => {
                resolve(() => {
                  done();
                  return used;
                });
              });
            });
            used.catch(reject);
          }),
      };
    },
  };
}
