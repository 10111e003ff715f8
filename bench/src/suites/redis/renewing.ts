import type { ReleaseLock } from "../../measuring/suite.js";
import { RENEW_AT } from "./terms.js";

/** The timer that a user writes where a library can renew but does not do so by itself. */
export function renewing(
  ttlMs: number,
  renew: () => Promise<unknown>,
  release: ReleaseLock,
): ReleaseLock {
  const stop = () => clearInterval(timer);
  // A failed renewal loses the lock. The bench asks the server about lost locks.
  const timer = setInterval(() => void renew().catch(stop), ttlMs * RENEW_AT);
  return () => {
    stop();
    return release();
  };
}
