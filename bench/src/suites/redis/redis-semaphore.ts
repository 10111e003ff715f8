import { Mutex, TimeoutError } from "redis-semaphore";
import type { Contender, Subject } from "../../measuring/suite.js";
import { GaveUp } from "../gave-up.js";
import { RESOURCE, WAIT_MS } from "../terms.js";
import { ioredisFor } from "./clients.js";
import { PEER_SITS_OUT, TUNED_SITS_OUT } from "./terms.js";

/** With the pauses of its defaults: 10 ms. */
export const semaphore = redisSemaphore("semaphore", "redis-semaphore", {});

export const semaphoreEvery1: Contender = {
  ...redisSemaphore("semaphore-1ms", "redis-semaphore, every 1 ms", { retryInterval: 1 }),
  sitsOut: TUNED_SITS_OUT,
};

function redisSemaphore(id: string, name: string, pauses: { retryInterval?: number }): Contender {
  return {
    id,
    name,
    ours: false,
    reach: "host",
    traces: { sends: ["set", "evalsha", "eval"], key: (resource) => `mutex:${resource}` },
    sitsOut: PEER_SITS_OUT,
    async open(context): Promise<Subject> {
      const client = await ioredisFor(context);
      const options = {
        ...{ lockTimeout: context.ttlMs, acquireTimeout: WAIT_MS, ...pauses },
        // By default it throws where nobody can catch it. The bench asks the server about lost
        // locks instead.
        onLockLost: () => {},
      };
      return {
        // redis-semaphore renews by itself.
        async acquire(resource = RESOURCE) {
          const mutex = new Mutex(client, resource, options);
          try {
            await mutex.acquire();
          } catch (error) {
            throw error instanceof TimeoutError ? new GaveUp() : error;
          }
          return () => mutex.release();
        },
      };
    },
  };
}
