import { systemClock } from "../../../core/runtime/clock.js";
import type { Granted, GrantRef } from "../../../engine.js";
import { emit } from "../../../events.js";
import { tokenOf } from "../node-record.js";
import type { ClaimState } from "./claim-state.js";
import type { Claims } from "./claims.js";

/** Core must confirm a pushed grant within this time. */
const CLAIM_MS = 3_000;

type GrantListener = (waiter: GrantRef, granted: Granted) => void;

/** Grants waiters between their heartbeats, as soon as the members before them leave. */
export class PushedGrants {
  readonly #claims: Claims;
  readonly #listeners = new Set<GrantListener>();
  #closed = false;

  constructor(claims: Claims) {
    this.#claims = claims;
  }

  onGrant(listener: GrantListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** A member before a waiter has left. granted: no request is needed to know that it holds. */
  async look(claimState: ClaimState, granted = false): Promise<void> {
    if (granted) this.#push(claimState);
    if (claimState.state !== "waiting" || this.#closed) return;
    try {
      const until = systemClock.now() + CLAIM_MS;
      const place = await this.#claims.lookNext(claimState, until);
      if (place.is === "granted") this.#push(claimState);
      else if (place.is === "queued" && place.closedMs > 0) {
        this.lookLater(claimState, place.closedMs);
      }
    } catch (error) {
      // The next heartbeat finds out.
      emit("failed", () => ({ during: "push", error }));
    }
  }

  /** Looks again when the resource is not closed any more. */
  lookLater(claimState: ClaimState, closedMs: number): void {
    systemClock.timer(closedMs + 1, () => void this.look(claimState), false);
  }

  close(): void {
    this.#closed = true;
    this.#listeners.clear();
  }

  #push(claimState: ClaimState): void {
    if (claimState.state !== "granted" || claimState.told || this.#closed) return;
    // A waiter that deletes its own obstacle also gets the watch event, and so may learn of its
    // turn twice.
    claimState.told = true;
    const { session, claim, aheadMs, ref, czxid } = claimState;
    const now = systemClock.now();
    const { since } = session;
    // Valid for one claim window from now, whenever the session was last confirmed.
    const ttlMs = Math.min(claim.ttlMs, session.leaseMs, now - since + CLAIM_MS);
    claimState.deadline = now + CLAIM_MS;
    const token = tokenOf(czxid);
    const granted = { token, tokens: claim.tokens, since: since - aheadMs, ttlMs };
    for (const listener of this.#listeners) listener(ref, { kind: "granted", ...granted });
  }
}
