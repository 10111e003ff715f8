import { type AcquireOptions, AcquireTimeoutError, connect, type Engine } from "holdfast";
import type { Subject } from "../measuring/suite.js";
import { GaveUp } from "./gave-up.js";
import { RESOURCE, WAIT_MS } from "./terms.js";

/** One of our engines, used as any user does. */
export async function ourSubject(engine: Engine, options: AcquireOptions): Promise<Subject> {
  const locks = await connect(engine, { defaults: { waitMs: WAIT_MS, ...options } });
  return {
    async acquire(resource = RESOURCE) {
      try {
        const lease = await locks.acquire(resource);
        return () => lease.release();
      } catch (error) {
        if (error instanceof AcquireTimeoutError) throw new GaveUp();
        throw error;
      }
    },
  };
}
