import { checkTtl, type Terms } from "../../options.js";
import type { Caller } from "../calling/call.js";
import { abandonGrant, letGrantExpire, releaseGrant } from "../calling/release.js";
import type { Keeper } from "../renewing/keeper.js";
import type { Clock } from "../runtime/clock.js";
import type { Grant } from "./grant.js";
import { HeldLease } from "./lease.js";

/** Decides what happens to a grant when its lease ends. */
export interface LeaseController {
  /** Called in the same tick as release(), so renewals stop before anything is awaited. */
  release(lease: HeldLease): Promise<"released" | "gone">;
  onLost(lease: HeldLease): void;
}

/**
 * Passes what a lease asks for straight to the backend. No grant is handed over to another lease.
 */
export class DirectController implements LeaseController {
  readonly clock: Clock;
  readonly #caller: Caller;
  readonly #keeper: Keeper;

  constructor(caller: Caller, keeper: Keeper) {
    this.clock = caller.clock;
    this.#caller = caller;
    this.#keeper = keeper;
  }

  /**
   * Creates a lease on a grant and starts renewing it. index: of its token in the grant's range.
   */
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
    // The request goes first, so that the next holder does not wait for our cleaning up. No renewal
    // can come in between, because all of this happens in one tick.
    const released = releaseGrant(this.#caller, lease.grant, lease.terms.callTimeoutMs);
    this.#keeper.remove(lease.grant);
    return released;
  }

  onLost(lease: HeldLease): void {
    this.#keeper.remove(lease.grant);
  }

  /**
   * The holder of a lost lease reports that it has stopped. The backend may still keep the grant:
   * releasing it lets the successor in earlier. With a lock-delay the holder asked for the
   * opposite, so the grant stays, except where a revocation waits for this release or close() makes
   * it.
   */
  releaseAfterLoss(lease: HeldLease): void {
    const isAsked = lease.lost?.reason === "revoked" || lease.lost?.reason === "closed";
    if (lease.grant.lockDelayMs > 0 && !isAsked) return;
    abandonGrant(this.#caller, lease.grant, lease.terms.callTimeoutMs);
  }

  /** Stops renewing. The grant outlives this process, and ends by itself after forMs. */
  async letExpire({ grant }: HeldLease, forMs: number): Promise<"released" | "gone"> {
    this.#checkTtl(forMs);
    this.#keeper.remove(grant);
    // Wait for a renewal by hand, or its caller would be told that the lease is gone.
    await grant.group.renewing?.over;
    return letGrantExpire(this.#caller, grant, forMs);
  }

  #checkTtl(ttlMs: number): void {
    const { name, traits } = this.#caller.engine;
    checkTtl(ttlMs, name, traits);
  }
}
