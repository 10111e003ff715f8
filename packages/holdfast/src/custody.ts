import type { Backend } from "./backend.js";
import type { Keeper } from "./keeper.js";
import type { Custody, HeldLease } from "./lease.js";

/** Looks after a grant that belongs to one lease only. */
export class SoleCustody implements Custody {
  readonly #backend: Backend;
  readonly #keeper: Keeper;

  constructor(backend: Backend, keeper: Keeper) {
    this.#backend = backend;
    this.#keeper = keeper;
  }

  renew(lease: HeldLease, ttlMs: number | undefined): Promise<void> {
    return this.#keeper.renewNow(lease, ttlMs ?? lease.grant.ttlMs);
  }

  giveBack(lease: HeldLease): Promise<"released" | "gone"> {
    this.#keeper.remove(lease.grant);
    const { resource, grantId } = lease.grant;
    return this.#backend.release({ resource, grantId, tombstoneMs: 0 }, lease.terms.callTimeoutMs);
  }

  onLost(lease: HeldLease): void {
    this.#keeper.remove(lease.grant);
  }

  /**
   * The backend may still keep the grant of a lease that was lost here, and the holder has stopped:
   * ending it lets the successor in earlier. With a lock-delay the holder asked for the opposite,
   * except where a revocation waits for this very release.
   */
  giveUp(lease: HeldLease): void {
    if (lease.grant.lockDelayMs > 0 && lease.lost?.reason !== "revoked") return;
    this.#backend.abandon(lease.grant, true, lease.terms.callTimeoutMs);
  }
}
