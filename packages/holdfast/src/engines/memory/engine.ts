import { compileGlob } from "../../core/acquiring/resource.js";
import type {
  Busy,
  Call,
  Claim,
  Engine,
  EngineTraits,
  Gone,
  Granted,
  GrantRef,
  ListFilter,
  ListPage,
  Queued,
  QueueFacet,
  Released,
  ReleaseRef,
  Renewed,
  RenewRef,
  ResourceView,
  RevokeRef,
  Sequence,
  Unknown,
  WatchFacet,
  Withdrawn,
} from "../../engine.js";
import { SortedNames } from "../../engine-kit/sorted-names.js";
import { EngineError } from "../../errors.js";
import { type MemoryGrant, ResourceRecords, tokenInUse } from "./resource-records.js";
import { MemoryStore } from "./store.js";

// The engine pushes grants. A heartbeat is needed only when a grant ends by time alone.
const HEARTBEAT_MS = 1_000;
// A page ends after this many names, even if few of them match: a longer one would block the
// process.
const MAX_NAMES_PER_PAGE = 4_096;
const DAY_MS = 86_400_000;

export const MEMORY_TRAITS: EngineTraits = {
  expiry: "ttl",
  ttl: { minMs: 1, maxMs: 365 * DAY_MS, stepMs: 1 },
  modes: ["exclusive", "shared"],
  limits: true,
  lockDelay: true,
  fencing: "process",
  tokenRange: 1024,
  leaves: true,
};

type GrantListener = (waiter: GrantRef, granted: Granted) => void;

/**
 * The reference engine: the shortest correct reading of the contract. It has no clock of its own: a
 * call happens at the instant at which it started.
 */
export class MemoryEngine implements Engine {
  readonly name = "memory";
  readonly traits = MEMORY_TRAITS;
  readonly #store: MemoryStore;
  readonly #listeners = new Set<GrantListener>();
  #names: WeakRef<SortedNames> | null = null;
  #closed = false;
  #hasEnqueued = false;

  constructor(store = new MemoryStore()) {
    this.#store = store;
  }

  async tryAcquire(claim: Claim, call: Call): Promise<Granted | Busy | Gone> {
    const now = this.#enter(call);
    const known = this.#repeat(claim, now, call);
    if (known !== null) return known;
    const grant = this.#store.tryGrant(claim, now);
    if (grant !== null) return granted(grant, call.startedAt);
    const retryAfterMs = Math.max(0, this.#nextEndMs(claim.resource, now));
    return { kind: "busy", holders: this.#holders(claim.resource, now), retryAfterMs };
  }

  async renew(grants: readonly RenewRef[], call: Call): Promise<readonly (Renewed | Gone)[]> {
    const now = this.#enter(call);
    return grants.map(({ resource, grantId, ttlMs, index = 0, leave = false }) => {
      const grant = this.#store.alive(resource, grantId, now);
      if (grant === null || (grant.left && !leave)) return this.#gone(resource, grantId);
      if (grant.revoked && index <= grant.index) return { kind: "gone", why: "revoked" };
      const since = call.startedAt;
      if (call.order < grant.order) {
        return { kind: "renewed", since, ttlMs: grant.expiresAt - now };
      }
      this.#store.arm(grant, now, ttlMs);
      const isNext = index > grant.index;
      // The revocation was meant for the earlier holder, which has passed its lease on.
      if (isNext) Object.assign(grant, { index, revoked: false });
      Object.assign(grant, { order: call.order, left: leave });
      return { kind: "renewed", since, ttlMs };
    });
  }

  async release(grants: readonly ReleaseRef[], call: Call): Promise<readonly (Released | Gone)[]> {
    const now = this.#enter(call);
    return grants.map(({ resource, grantId, tombstoneMs }) => {
      if (tombstoneMs > 0) this.#store.addTombstone(grantId, now, tombstoneMs);
      const isQueued = this.#store.isQueued(resource, grantId);
      // A holder whose grant has expired must not end the lock-delay that follows it.
      const grant = this.#store.alive(resource, grantId, now);
      const canRelease = isQueued || (grant !== null && !grant.left);
      if (!canRelease) return this.#gone(resource, grantId);
      this.#store.end(resource, grantId, now);
      return { kind: "released" };
    });
  }

  async check({ resource, mode, token }: Sequence, call: Call): Promise<boolean> {
    const grant = this.#find(resource, token, this.#enter(call));
    return grant !== null && grant.claim.mode === mode && !grant.revoked;
  }

  async revoke({ resource, token, force }: RevokeRef, call: Call): Promise<"revoked" | "gone"> {
    const now = this.#enter(call);
    const grant = this.#find(resource, token, now);
    if (grant === null || tokenInUse(grant) !== token) return "gone";
    grant.revoked = true;
    if (force) this.#store.end(resource, grant.claim.grantId, now);
    for (const listener of this.#store.changeListeners) listener(resource);
    return "revoked";
  }

  async inspect(resource: string, call: Call): Promise<ResourceView> {
    return this.#view(resource, this.#enter(call));
  }

  async list({ match, cursor, max }: ListFilter, call: Call): Promise<ListPage> {
    this.#enter(call);
    const glob = compileGlob(match);
    const names = await this.#sortedNames(cursor === null);
    const now = this.#enter(call);
    const views: ResourceView[] = [];
    let namesRead = 0;
    for (const name of names.after(cursor)) {
      if (glob.test(name)) {
        const view = this.#view(name, now);
        // The resource may have become free since the names were sorted.
        if (this.#store.resources.has(name)) views.push(view);
      }
      if (views.length === max || ++namesRead === MAX_NAMES_PER_PAGE)
        return { views, cursor: name };
    }
    return { views, cursor: null };
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#listeners.clear();
    // A lost release leaves a waiter behind. Memory waiters never time out, so the queue would
    // stall.
    if (this.#hasEnqueued) this.#store.removeWaitersOf(this);
  }

  readonly queue: QueueFacet = {
    enqueue: async (claim: Claim, call: Call): Promise<Granted | Queued | Gone> => {
      const now = this.#enter(call);
      const known = this.#repeat(claim, now, call);
      if (known !== null) return known;
      if (!this.#store.isQueued(claim.resource, claim.grantId)) {
        const grant = this.#store.tryGrant(claim, now);
        if (grant !== null) return granted(grant, call.startedAt);
        const { resource, grantId } = claim;
        // The push waits until the call that made the grant is over, because a listener may call
        // the engine again at once.
        const push = (grant: MemoryGrant, since: number) => {
          const answer = granted(grant, since);
          queueMicrotask(() => {
            for (const listener of this.#listeners) listener({ resource, grantId }, answer);
          });
        };
        this.#store.enqueue({ claim, push, engine: this });
        this.#hasEnqueued = true;
      }
      return this.#queued(claim, now);
    },

    heartbeat: async (
      waiters: readonly GrantRef[],
      call: Call,
    ): Promise<readonly (Queued | Granted | Unknown)[]> => {
      const now = this.#enter(call);
      return waiters.map((waiter) => {
        const grant = this.#store.alive(waiter.resource, waiter.grantId, now);
        if (isInUse(grant)) return this.#rearm(grant, now, call);
        const isQueued = this.#store.isQueued(waiter.resource, waiter.grantId);
        return isQueued ? this.#queued(waiter, now) : { kind: "unknown" };
      });
    },

    withdraw: async (waiter: GrantRef, call: Call): Promise<Withdrawn | Granted> => {
      const now = this.#enter(call);
      const grant = this.#store.alive(waiter.resource, waiter.grantId, now);
      if (isInUse(grant)) return this.#rearm(grant, now, call);
      // Only removes a waiter: a withdrawal that is delivered twice must not end a grant in use.
      if (this.#store.isQueued(waiter.resource, waiter.grantId)) {
        this.#store.end(waiter.resource, waiter.grantId, now);
      }
      return { kind: "withdrawn" };
    },

    onGrant: (listener: GrantListener) => {
      this.#listeners.add(listener);
      return () => this.#listeners.delete(listener);
    },
  };

  readonly watch: WatchFacet = {
    onChange: (listener) => {
      this.#store.changeListeners.add(listener);
      return () => this.#store.changeListeners.delete(listener);
    },
  };

  /**
   * Answers a repeated grantId: the same token, with a fresh ttl. A grantId with a tombstone is
   * refused. Null for a new grantId.
   */
  #repeat(claim: Claim, now: number, call: Call): Granted | Gone | null {
    if (this.#store.hasTombstone(claim.grantId, now)) return { kind: "gone", why: "unknown" };
    const grant = this.#store.alive(claim.resource, claim.grantId, now);
    if (grant === null) return null;
    if (grant.left) return { kind: "gone", why: "unknown" };
    return grant.revoked ? { kind: "gone", why: "revoked" } : this.#rearm(grant, now, call);
  }

  #rearm(grant: MemoryGrant, now: number, call: Call): Granted {
    this.#store.arm(grant, now, grant.ttlMs);
    return granted(grant, call.startedAt);
  }

  #find(resource: string, token: bigint, now: number): MemoryGrant | null {
    this.#store.settle(resource, now);
    return this.#store.resources.get(resource)?.find(token, now) ?? null;
  }

  /**
   * The names that a listing reads page by page, sorted once. The reference is weak, so a listing
   * that is abandoned half-way keeps no memory.
   */
  async #sortedNames(afresh: boolean): Promise<SortedNames> {
    const known = afresh ? undefined : this.#names?.deref();
    if (known !== undefined) return known;
    const names = await SortedNames.of(this.#store.resources.keys());
    this.#names = new WeakRef(names);
    return names;
  }

  #queued({ resource, grantId }: GrantRef, now: number): Queued {
    const nextMs = this.#nextEndMs(resource, now);
    return {
      kind: "queued",
      position: this.#store.position(resource, grantId),
      nextHeartbeatMs: Math.min(HEARTBEAT_MS, Math.max(1, nextMs)),
      holders: this.#holders(resource, now),
    };
  }

  #holders(resource: string, now: number) {
    return this.#store.resources.get(resource)?.holders(now) ?? [];
  }

  #nextEndMs(resource: string, now: number): number {
    return this.#store.resources.get(resource)?.nextEndMs(now) ?? Infinity;
  }

  #view(resource: string, now: number): ResourceView {
    this.#store.settle(resource, now);
    const records = this.#store.resources.get(resource) ?? new ResourceRecords();
    return records.view(resource, now);
  }

  #gone(resource: string, grantId: string): Gone {
    const grants = this.#store.resources.get(resource)?.grants;
    const replaced = grants !== undefined && grants.size > 0 && !grants.has(grantId);
    return { kind: "gone", why: replaced ? "replaced" : "expired" };
  }

  /** The instant of a call. A call that arrives late happens when it arrives, never in the past. */
  #enter(call: Call): number {
    if (this.#closed) {
      throw new EngineError("the memory engine was closed", { effect: "none", retryable: false });
    }
    return this.#store.instant(call.startedAt);
  }
}

/** Whether the engine may still tell the holder that it has this grant. */
function isInUse(grant: MemoryGrant | null): grant is MemoryGrant {
  return grant !== null && !grant.revoked && !grant.left;
}

function granted({ token, claim, ttlMs }: MemoryGrant, since: number): Granted {
  return { kind: "granted", token, tokens: claim.tokens, since, ttlMs };
}
