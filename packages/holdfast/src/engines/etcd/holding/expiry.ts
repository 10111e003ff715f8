import { systemClock } from "../../../core/runtime/clock.js";
import type { EtcdClient } from "../client/client.js";
import { created, del, found, get, type KeyValue, put, unchanged } from "../client/requests.js";
import type { Leases } from "../leases/leases.js";
import { markerOf } from "../queue/keys.js";
import { readEntry } from "../queue/queue.js";
import type { ClaimStates } from "./claim-states.js";
import type { Holding, Holdings, TrackedClaim, WaitingClaim } from "./holdings.js";
import type { PushedGrants } from "./pushed-grants.js";
import type { Releases } from "./releases.js";

const EXPIRE_MS = 1_000;
const MOST_CHANGES = 3;

interface Tools {
  readonly client: EtcdClient;
  readonly leases: Leases;
  readonly releases: Releases;
  readonly holdings: Holdings;
  readonly pushedGrants: PushedGrants;
  readonly claimStates: ClaimStates;
}

/** Ends claims that were not renewed or sent no heartbeat, although other claims keep their lease alive. */
export class Expiry {
  readonly #tools: Tools;

  constructor(tools: Tools) {
    this.#tools = tools;
  }

  async end(kept: TrackedClaim): Promise<void> {
    const deadline = systemClock.now() + EXPIRE_MS;
    if (kept.kind === "leftover") await this.#tools.releases.release(kept.ref, deadline);
    else if (kept.kind === "waiter") await this.#endWaiter(kept, deadline);
    else await this.#endGrant(kept, deadline);
  }

  async #endGrant(holding: Holding, deadline: number): Promise<void> {
    const { client, leases } = this.#tools;
    const { key, created: revision } = holding.self;
    const success = [del(key)];
    let compare = created(key, revision);
    if (holding.leaving) {
      const now = await this.#read(key, deadline);
      if (now === undefined || readEntry(now)?.left) return;
      compare = unchanged(now);
    }
    if (holding.lockDelayMs > 0) {
      const mark = await leases.dying(holding.lockDelayMs, deadline);
      success.push(put(markerOf(key), "", mark.id));
    }
    const txn = { compare: [compare], success, failure: [] };
    await client.txn(txn, { deadline, repeatable: true });
  }

  /**
   * Deletes a waiter's key only in its current revision: the deletion may arrive late, after the waiter
   * became a holder and was told so. A waiter that became a holder without our knowledge is tracked as a
   * grant, and ends like a grant that nobody renews.
   */
  async #endWaiter(waiting: WaitingClaim, deadline: number): Promise<void> {
    const { client, holdings, pushedGrants, claimStates } = this.#tools;
    pushedGrants.unfollow(waiting);
    waiting.deletionSent = true;
    const { key } = waiting.self;
    for (let changes = 0; changes < MOST_CHANGES; changes++) {
      const compare = [unchanged(waiting.self)];
      const txn = { compare, success: [del(key)], failure: [get(key)] };
      const answer = await client.txn(txn, { deadline, repeatable: true });
      const self = found(answer, 0)[0];
      if (answer.succeeded || self === undefined) return;
      const entry = readEntry(self)!;
      const at = systemClock.now();
      const times = { at, deadline, startedAt: at + waiting.offsetMs };
      if (holdings.waiter(waiting.ref) !== waiting) return;
      if (entry.claimed) {
        const holds = { kind: "holds", self, entry, marker: null } as const;
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
