import { type AcquireOptions, AcquireTimeoutError, connect, type Engine } from "holdfast";
import { GaveUp } from "./gave-up.js";
import type { Contender, Place, Subject, Traces } from "./suite.js";
import { RESOURCE, WAIT_MS } from "./terms.js";

/** An engine of ours, on a server. */
export function holdfast(
  id: string,
  name: string,
  traces: Traces,
  engineOn: (place: Place) => Engine | Promise<Engine>,
  options: AcquireOptions = {},
): Contender {
  return {
    id,
    name,
    ours: true,
    reach: "host",
    traces,
    async open(place): Promise<Subject> {
      const { ttlMs } = place;
      const defaults = { waitMs: WAIT_MS, ttlMs, ...options };
      const locks = await connect(await engineOn(place), { defaults });
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
    },
  };
}
