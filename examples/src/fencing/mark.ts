// #region mark
import { FencedOutError, type Lease } from "holdfast";

/** The part of a lease that the statements need. */
export type Held = Pick<Lease, "resource" | "token" | "assertHeld">;

/** The mark is the token that is registered now; null where there is none. */
export function demandEqual(lease: Held, mark: bigint | null): void {
  if (mark === lease.token) return;
  if (mark !== null && mark > lease.token) throw fencedOut(lease);
  // Raising the mark here would hide that others may have written since we read.
  throw new FencedOutError(
    `the registration of token ${lease.token} is lost: register again, and read again`,
    { resource: lease.resource },
  );
}

export function fencedOut({ resource, token }: Held): FencedOutError {
  return new FencedOutError(`a newer holder of "${resource}" registered; token ${token} is stale`, {
    resource,
  });
}
// #endregion
