import { sleep, systemClock } from "../../../core/runtime/clock.js";
import type { Gone, Granted, GrantRef, Queued, ReleaseRef } from "../../../engine.js";
import { emit } from "../../../events.js";
import { type CallTimes, onCoreClock } from "../client/deadlines.js";
import type { LeasePool } from "../leases/lease-pool.js";
import type { Leases } from "../leases/leases.js";
import type { Notifications } from "../notifications/notifications.js";
import type { Holds, Waits } from "../queue/claim-answer.js";
import { readEntry, tokenOf, viewsOf } from "../queue/queue.js";
import type { WaiterKeys } from "../queue/waiter-keys.js";
import {
  type Holding,
  type Holdings,
  leaseOf,
  type TrackedClaim,
  type WaitingClaim,
} from "./holdings.js";
import type { PushedGrants } from "./pushed-grants.js";

const CLOSE_MS = 500;
/** Core repeats a release twice at once. Only after that do we release the leftover. */
const LEFTOVER_MS = 500;
/** Heartbeats during the life of a waiter's lease. */
const BEATS = 3;

interface Tools {
  readonly leases: Leases;
  readonly leasePool: LeasePool;
  readonly waiterKeys: WaiterKeys;
  readonly holdings: Holdings;
  readonly notifications: Notifications;
  readonly pushedGrants: PushedGrants;
}

/** Records what core is told of our claims: grants, and places in the queue. */
export class ClaimStates {
  readonly #tools: Tools;
  #closed = false;

  constructor(tools: Tools) {
    this.#tools = tools;
  }

  /** Other claims may keep its lease alive, so a claim that could not be released now is released later. */
  releaseLater(ref: ReleaseRef, kept: TrackedClaim | null): void {
    if (this.#closed) return;
    const until = systemClock.now() + LEFTOVER_MS;
    const lease = kept === null ? null : leaseOf(kept);
    this.#tools.holdings.keep({ kind: "leftover", ref, lease, until, tries: 0 });
  }

  /** The grant counts from the last confirmed keepalive of the lease of its key. */
  async grant(ref: GrantRef, holds: Holds, times: CallTimes): Promise<Granted | Gone> {
    const { leases, holdings, notifications, pushedGrants } = this.#tools;
    const { self, entry, marker } = this.#latest(ref, holds);
    const { lockDelayMs, tokens } = entry;
    const lease = leases.find(self.lease);
    let [since, ttlMs] = [times.at, entry.ttlMs];
    if (lease === null) {
      // A lease of another engine, or an old one of ours: it may have ended by now.
      const left = await leases.leftOf(self, times.deadline);
      if (left === null || left.leastMs === 0) return { kind: "gone", why: "expired" };
      ttlMs = Math.min(ttlMs, left.leastMs);
    } else {
      since = lease.since;
      ttlMs = Math.min(ttlMs, lease.ttlMs);
      if (lockDelayMs > 0) {
        const mark = leases.peek(entry.ttlMs + lockDelayMs);
        since = Math.min(since, mark?.since ?? since);
      }
    }
    const known = this.forget(ref);
    const until = Math.max(since + ttlMs, known?.kind === "grant" ? known.until : 0);
    const told = entry.claimed;
    holdings.keep({
      ...{ kind: "grant", ref: refOf(ref), self, told, until, tries: 0, lockDelayMs, marker },
      ...{ gone: false, leaving: known?.kind === "grant" && known.leaving },
      order: known?.kind === "grant" ? known.order : 0,
      doubtful: known?.kind === "grant" ? known.doubtful : new Set(),
    });
    notifications.listen(self.created);
    pushedGrants.wakeBehind(self);
    const isMarked = lockDelayMs === 0 || (marker !== null && leases.find(marker) !== null);
    if (lease === null || !isMarked) notifications.tellSoon(ref.resource);
    const token = tokenOf(self);
    return { kind: "granted", token, tokens, since: onCoreClock(since, times), ttlMs };
  }

  /**
   * Records a waiter's place. A push may have granted the claim after the queue was read. A waiter must
   * never replace a grant: our own process would delete the grant's key when the waiter sends no more
   * heartbeats. So there is no await between the look at the holdings and their change.
   */
  async queue(ref: GrantRef, waits: Waits, times: CallTimes): Promise<Queued | Granted | Gone> {
    const { leasePool, holdings, notifications, pushedGrants } = this.#tools;
    const grant = holdings.grant(ref);
    if (grant?.gone) return { kind: "gone", why: "expired" };
    if (grant !== null) return this.grant(ref, holdsAsKnown(grant), times);
    const { self, holders, before } = waits;
    const graceMs = leasePool.waiterMs(readEntry(self)!.ttlMs);
    const known = holdings.waiter(ref);
    const position = waits.position ?? known?.position ?? 0;
    const offsetMs = Math.min(times.startedAt - times.at, known?.offsetMs ?? Infinity);
    // From now: core counts the time to its next heartbeat from this answer, however late it comes.
    const until = systemClock.now() + graceMs;
    const waiting: WaitingClaim = known ?? {
      ...{ kind: "waiter", ref: refOf(ref), self, position, offsetMs, until, tries: 0 },
      ...{ graceMs, interests: [], lastBefore: null, deletionSent: false, holders, readAt: 0 },
    };
    holdings.keep(Object.assign(waiting, { self, position, offsetMs, until, tries: 0 }));
    waiting.lastBefore = waits.lastBefore;
    waiting.holders = holders;
    waiting.readAt = waits.readAt ?? systemClock.now();
    if (before !== null) pushedGrants.follow(waiting, before);
    notifications.listen(self.created);
    return {
      ...{ kind: "queued", position, nextHeartbeatMs: graceMs / BEATS },
      holders: viewsOf(holders),
    };
  }

  /** A late answer must not undo what a renewal has changed since. */
  #latest(ref: GrantRef, holds: Holds): Holds {
    const known = this.#tools.holdings.grant(ref);
    const isNewer = known !== null && BigInt(known.self.modified) > BigInt(holds.self.modified);
    return isNewer ? holdsAsKnown(known) : holds;
  }

  forget(ref: GrantRef): TrackedClaim | null {
    const kept = this.#tools.holdings.forget(ref);
    if (kept?.kind === "waiter") this.#tools.pushedGrants.unfollow(kept);
    return kept;
  }

  /** Removes our waiters, so that those behind them need not wait for their leases to expire. */
  async close(): Promise<void> {
    const { waiterKeys, holdings, notifications, pushedGrants } = this.#tools;
    this.#closed = true;
    pushedGrants.close();
    notifications.close();
    const deadline = systemClock.now() + CLOSE_MS;
    const removed = Promise.all(
      holdings.waiters.map(({ self }) => waiterKeys.remove(self, deadline)),
    );
    const late = sleep(systemClock, CLOSE_MS, undefined, false);
    await Promise.race([removed, late]).catch((error: unknown) =>
      emit("failed", () => ({ during: "close", error })),
    );
    removed.catch(() => {});
    holdings.close();
  }
}

/** A grant as this process knows it. */
function holdsAsKnown({ self, marker }: Holding): Holds {
  return { kind: "holds", self, entry: readEntry(self)!, marker };
}

function refOf({ resource, grantId }: GrantRef): GrantRef {
  return { resource, grantId };
}
