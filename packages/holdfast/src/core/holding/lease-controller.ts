import { checkTtl, type Terms } from "../../options.js";
import type { Caller } from "../calling/call.js";
import { abandonGrant, letGrantExpire, releaseGrant } from "../calling/release.js";
import type { Keeper } from "../renewing/keeper.js";
import type { Clock } from "../runtime/clock.js";
import type { Grant } from "./grant.js";
import { HeldLease } from "./lease.js";

/** Who decides what becomes of a grant when the lease on it ends. */
export interface LeaseController {
  /** Called in the same tick as release(): renewals stop before anything is awaited. */
  release(lease: HeldLease): Promise<"released" | "gone">;
  onLost(lease: HeldLease): void;
}

/** Does with a grant what its lease asks for, at the backend. No grant is passed on to another lease. */
export class DirectController implements LeaseController {
  readonly clock: Clock;
  readonly #caller: Caller;
  readonly #keeper: Keeper;

  constructor(caller: Caller, keeper: Keeper) {
    this.clock = caller.clock;
    this.#caller = caller;
    this.#keeper = keeper;
  }

  /** A lease on a grant, which is renewed from now on. index: of its token in the grant's range. */
  hold(
    grant: Grant,
    index: number,
    terms: Terms,
    now: number,
    controller: LeaseController = this,
  ): HeldLease {
    const lease = new HeldLease(grant, index, terms, this, controller, now);
    this.#keeper.add(grant);
    return lease;
  }

  async renew(lease: HeldLease, ttlMs: number | undefined): Promise<void> {
    if (ttlMs !== undefined) this.#checkTtl(ttlMs);
    await this.#keeper.renewNow(lease, ttlMs ?? lease.grant.group.ttlMs);
  }

  release(lease: HeldLease): Promise<"released" | "gone"> {
    // The request first: who waits for this release should not wait for our own tidying up. Nothing
    // is renewed in between, as all of it happens in one tick.
    const released = releaseGrant(this.#caller, lease.grant, lease.terms.callTimeoutMs);
    this.#keeper.remove(lease.grant);
    return released;
  }

  onLost(lease: HeldLease): void {
    this.#keeper.remove(lease.grant);
  }

  /**
   * After a loss the holder says that it has stopped. The backend may still keep the grant: ending it
   * lets the successor in earlier. With a lock-delay the holder asked for the opposite, except where a
   * revocation waits for this very release, or close() makes it.
   */
  releaseAfterLoss(lease: HeldLease): void {
    const isAsked = lease.lost?.reason === "revoked" || lease.lost?.reason === "closed";
    if (lease.grant.lockDelayMs > 0 && !isAsked) return;
    abandonGrant(this.#caller, lease.grant, lease.terms.callTimeoutMs);
  }

  /** Renews it no longer. The grant outlives this process, and ends by itself after forMs. */
  async letExpire({ grant }: HeldLease, forMs: number): Promise<"released" | "gone"> {
    this.#checkTtl(forMs);
    this.#keeper.remove(grant);
    // Whoever renews it by hand would be told that it is gone.
    await grant.group.renewing?.over;
    return letGrantExpire(this.#caller, grant, forMs);
  }

  #checkTtl(ttlMs: number): void {
    const { name, traits } = this.#caller.engine;
    checkTtl(ttlMs, name, traits);
  }
}
