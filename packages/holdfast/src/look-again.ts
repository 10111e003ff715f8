import type { Backend } from "./backend.js";
import { exponential, type RetryStrategy } from "./retry.js";

/** Where the backend can neither keep a line nor tell of changes, looking again is all there is. */
const POLLING: RetryStrategy = exponential({ minMs: 20, maxMs: 1_000 });
/** Where it tells of changes, a look is only for the notice that got lost. */
const WATCHING: RetryStrategy = exponential({ minMs: 1_000, maxMs: 1_000 });

/** How often to look again while a resource is busy, where the caller has no wish of its own. */
export function ownPace({ engine }: Backend): RetryStrategy {
  return engine.watch ? WATCHING : POLLING;
}
