import { systemClock } from "../../../core/runtime/clock.js";
import type { EtcdClient } from "../client/client.js";
import { created, del, found, get, type KeyValue, put, unchanged } from "../client/requests.js";
import type { Leases } from "../leases/leases.js";
import { readRecord } from "../queue/key-record.js";
import { markerOf } from "../queue/keys.js";
import type { ClaimStates } from "./claim-states.js";
import type { PushedGrants } from "./pushed-grants.js";
import type { Releases } from "./releases.js";
import type { HeldGrant, TrackedClaim, TrackedClaims, WaitingClaim } from "./tracked-claims.js";

const EXPIRE_MS = 1_000;
const MOST_CHANGES = 3;

interface Tools {
  readonly client: EtcdClient;
  readonly leases: Leases;
  readonly releases: Releases;
  readonly trackedClaims: TrackedClaims;
  readonly pushedGrants: PushedGrants;
  readonly claimStates: ClaimStates;
}

/**
 * Ends claims that were not renewed or sent no heartbeat, although other claims keep their lease
 * alive.
 */
export class Expiry {
  readonly #tools: Tools;

  constructor(tools: Tools) {
    this.#tools = tools;
  }

  async end(claim: TrackedClaim): Promise<void> {
    const deadline = systemClock.now() + EXPIRE_MS;
    if (claim.kind === "leftover") await this.#tools.releases.release(claim.ref, deadline);
    else if (claim.kind === "waiter") await this.#endWaiter(claim, deadline);
    else await this.#endGrant(claim, deadline);
  }

  async #endGrant(held: HeldGrant, deadline: number): Promise<void> {
    const { client, leases } = this.#tools;
    const { key, created: revision } = held.self;
    const success = [del(key)];
    let compare = created(key, revision);
    if (held.leaving) {
      const now = await this.#read(key, deadline);
      if (now === undefined || readRecord(now)?.left) return;
      compare = unchanged(now);
    }
    if (held.lockDelayMs > 0) {
      const marker = await leases.expiring(held.lockDelayMs, deadline);
      success.push(put(markerOf(key), "", marker.id));
    }
    const txn = { compare: [compare], success, failure: [] };
    await client.txn(txn, { deadline, repeatable: true });
  }

  /**
   * Deletes a waiter's key only in its current revision: the deletion may arrive late, after the
   * waiter became a holder and was told so. A waiter that became a holder without our knowledge is
   * tracked as a grant, and ends like a grant that nobody renews.
   */
  async #endWaiter(waiting: WaitingClaim, deadline: number): Promise<void> {
    const { client, trackedClaims, pushedGrants, claimStates } = this.#tools;
    pushedGrants.unfollow(waiting);
    waiting.deletionSent = true;
    const { key } = waiting.self;
    for (let changes = 0; changes < MOST_CHANGES; changes++) {
      const compare = [unchanged(waiting.self)];
      const txn = { compare, success: [del(key)], failure: [get(key)] };
      const answer = await client.txn(txn, { deadline, repeatable: true });
      const self = found(answer, 0)[0];
      if (answer.succeeded || self === undefined) return;
      const record = readRecord(self)!;
      const at = systemClock.now();
      const times = { at, deadline, startedAt: at + waiting.offsetMs };
      if (trackedClaims.waiter(waiting.ref) !== waiting) return;
      if (record.claimed) {
        const holds = { kind: "holds", self, record, marker: null } as const;
        await claimStates.grant(waiting.ref, holds, times);
        return;
      }
      waiting.self = self;
    }
  }

  async #read(key: string, deadline: number): Promise<KeyValue | undefined> {
    const txn = { compare: [], success: [get(key)], failure: [] };
    return found(await this.#tools.client.txn(txn, { deadline, repeatable: true }), 0)[0];
  }
}
