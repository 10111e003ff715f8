import { ClosedError } from "../../errors.js";
import { emit } from "../../events.js";
import type { Terms } from "../../options.js";
import { onAbort } from "../acquiring/on-abort.js";
import { PendingClaim } from "../acquiring/pending-claim.js";
import { abandonGrant } from "../calling/release.js";
import type { Grant } from "../holding/grant.js";
import type { HeldLease } from "../holding/lease.js";
import type { WaitContext } from "./wait-context.js";

/**
 * Makes a claim for one caller, who waits in no local queue. leaseOn makes the lease on its grant.
 */
export function claimAlone(
  common: WaitContext,
  resource: string,
  terms: Terms,
  startedAt: number,
  leaseOn: (grant: Grant, now: number) => HeldLease,
): Promise<HeldLease> {
  return new Promise((resolve, reject) => {
    const { waitMs, retry, signal } = terms;
    const over = () => {
      common.alone.delete(claim);
      stopListening?.();
    };
    const granted = (grant: Grant, now: number) => {
      over();
      if (common.isClosed) {
        abandonGrant(common.caller, grant, terms.callTimeoutMs);
        reject(closedError());
        return;
      }
      try {
        const lease = leaseOn(grant, now);
        emit("acquired", () => ({ ...lease.subject(), waitedMs: lease.acquiredAt - startedAt }));
        resolve(lease);
      } catch (error) {
        reject(error);
      }
    };
    const failed = (error: unknown) => {
      over();
      reject(error);
    };
    const request = { resource, terms, tokens: 1, startedAt, waitMs, retry };
    const claim = new PendingClaim(common, request, { granted, failed, onHolders: () => {} });
    const stopListening = signal && onAbort(signal, () => claim.abort(signal.reason));
    common.alone.add(claim);
    claim.start();
  });
}

/** Not a UsageError: the waiting caller did nothing wrong. */
export function closedError(): ClosedError {
  return new ClosedError("these locks were closed while this acquire waited");
}
