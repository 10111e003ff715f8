import { LockFactory } from "@verrou/core";
import { redisStore } from "@verrou/core/drivers/redis";
import type { Contender, Subject } from "../../measuring/suite.js";
import { GaveUp } from "../gave-up.js";
import { RESOURCE } from "../terms.js";
import { ioredisFor } from "./clients.js";
import { renewing } from "./renewing.js";
import { PEER_SITS_OUT, TUNED_SITS_OUT } from "./terms.js";

/** With the pauses of its defaults: 250 ms. It waits for ever by itself. */
export const verrou = verrouWith("verrou", "@verrou/core", {});

export const verrouEvery10: Contender = {
  ...verrouWith("verrou-10ms", "@verrou/core, every 10 ms", { delay: 10 }),
  sitsOut: TUNED_SITS_OUT,
};

function verrouWith(id: string, name: string, retry: { delay?: number }): Contender {
  return {
    id,
    name,
    ours: false,
    reach: "host",
    traces: { sends: ["set", "eval"], key: (resource) => resource },
    sitsOut: PEER_SITS_OUT,
    async open(context): Promise<Subject> {
      const connection = await ioredisFor(context);
      const locks = new LockFactory(redisStore({ connection: connection as never }).factory(), {
        retry,
      });
      const acquire = async (resource: string) => {
        const lock = locks.createLock(resource, context.ttlMs);
        if (!(await lock.acquire())) throw new GaveUp();
        return lock;
      };
      return {
        async acquire(resource = RESOURCE) {
          const lock = await acquire(resource);
          return () => lock.release();
        },
        async keep(resource) {
          const lock = await acquire(resource);
          return renewing(
            context.ttlMs,
            () => lock.extend(),
            () => lock.release(),
          );
        },
      };
    },
  };
}
