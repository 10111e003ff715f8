import { sitOut } from "../terms.js";

/**
 * Where a library leaves it to its user to renew, at this part of the ttl: what redis-semaphore
 * does.
 */
export const RENEW_AT = 0.8;

/** Scenarios in which nobody waits for anybody. */
export const UNCONTENDED = ["sequential", "distinct", "renewal", "many-leases", "growth"] as const;
/** Scenarios in which no process has two waiters for one resource. */
export const SHORT_OF_WAITERS = [...UNCONTENDED, "scattered-crowd", "hand-over"] as const;
/** Scenarios about waiting. */
export const CONTENDED = [
  ...(["local-waiters", "process-waiters", "crowd"] as const),
  ...(["scattered-crowd", "hand-over"] as const),
] as const;
/** Scenarios in which nobody does one thing at a time on its own. */
export const ALL_BUT_SEQUENTIAL = [...UNCONTENDED.slice(1), ...CONTENDED];

/** What only some show. */
export const PEER_SITS_OUT = {
  "many-leases": "measured with a tenth of them",
  growth: "holds one key with an expiry, as raw ioredis does",
};
export const TUNED_SITS_OUT = sitOut(
  UNCONTENDED,
  "nobody waits here, so pauses make no difference",
);
