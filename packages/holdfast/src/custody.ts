import type { Backend } from "./backend.js";
import type { Keeper } from "./keeper.js";
import type { Custody, HeldLease } from "./lease.js";
import { checkTtl } from "./options.js";

/** Looks after a grant that belongs to one lease only. */
export class SoleCustody implements Custody {
  readonly #backend: Backend;
  readonly #keeper: Keeper;

  constructor(backend: Backend, keeper: Keeper) {
    this.#backend = backend;
    this.#keeper = keeper;
  }

  async renew(lease: HeldLease, ttlMs: number | undefined): Promise<void> {
    const { name, traits } = this.#backend.engine;
    if (ttlMs !== undefined) checkTtl(ttlMs, name, traits);
    await this.#keeper.renewNow(lease, ttlMs ?? lease.grant.ttlMs);
  }

  giveBack(lease: HeldLease): Promise<"released" | "gone"> {
    // The request first: who waits for this release should not wait for our own tidying up. Nothing
    // is renewed in between, as all of it happens in one tick.
    const ended = this.#backend.endGrant(lease.grant, lease.terms.callTimeoutMs);
    this.#keeper.remove(lease.grant);
    return ended;
  }

  onLost(lease: HeldLease): void {
    this.#keeper.remove(lease.grant);
  }

  async leave({ grant }: HeldLease, forMs: number): Promise<"released" | "gone"> {
    const { name, traits } = this.#backend.engine;
    checkTtl(forMs, name, traits);
    this.#keeper.remove(grant);
    // Whoever renews it by hand would be told that it is gone.
    await grant.renewing;
    return this.#backend.leaveGrant(grant, forMs);
  }

  /**
   * The backend may still keep the grant of a lease that was lost here, and the holder has stopped:
   * ending it lets the successor in earlier. With a lock-delay the holder asked for the opposite,
   * except where a revocation waits for this very release, or close() makes it.
   */
  giveUp(lease: HeldLease): void {
    const isAsked = lease.lost?.reason === "revoked" || lease.lost?.reason === "closed";
    if (lease.grant.lockDelayMs > 0 && !isAsked) return;
    this.#backend.abandonGrant(lease.grant, lease.terms.callTimeoutMs);
  }
}
