import { createLock, LockAcquisitionError } from "@microfleet/ioredis-lock";
import type { Contender, Subject } from "../../measuring/suite.js";
import { GaveUp } from "../gave-up.js";
import { RESOURCE, WAIT_MS } from "../terms.js";
import { ioredisFor } from "./clients.js";
import { renewing } from "./renewing.js";
import { PEER_SITS_OUT, TUNED_SITS_OUT } from "./terms.js";

const DEFAULT_DELAY_MS = 50;

/** With the pauses of its defaults: 50 to 60 ms. */
export const ioredisLock = ioredisLockEvery("ioredis-lock", DEFAULT_DELAY_MS);

export const ioredisLockEvery10: Contender = {
  ...ioredisLockEvery("ioredis-lock-10ms", 10),
  sitsOut: TUNED_SITS_OUT,
};

function ioredisLockEvery(id: string, delay: number): Contender {
  const every = delay === DEFAULT_DELAY_MS ? "" : `, every ${delay} ms`;
  return {
    id,
    name: `@microfleet/ioredis-lock${every}`,
    ours: false,
    reach: "host",
    traces: { sends: ["set", "evalsha", "eval"], key: (resource) => resource },
    sitsOut: PEER_SITS_OUT,
    async open(context): Promise<Subject> {
      const client = await ioredisFor(context);
      const options = { timeout: context.ttlMs, delay, retries: Math.ceil(WAIT_MS / delay) };
      const acquire = async (resource: string) => {
        try {
          return await createLock(client as never, options).acquire(resource);
        } catch (error) {
          const held = error instanceof LockAcquisitionError && /^Could not/.test(error.message);
          throw held ? new GaveUp() : error;
        }
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
