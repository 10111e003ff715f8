import { sleep, systemClock } from "../../../core/runtime/clock.js";
import type { Gone, Granted, GrantRef, Queued, ReleaseRef } from "../../../engine.js";
import { emit } from "../../../events.js";
import { type CallTimes, onCoreClock } from "../client/deadlines.js";
import type { LeasePool } from "../leases/lease-pool.js";
import type { Leases } from "../leases/leases.js";
import type { Notifications } from "../notifications/notifications.js";
import { readRecord } from "../queue/key-record.js";
import { tokenOf, viewsOf } from "../queue/queue.js";
import type { Holds, Waits } from "../queue/queue-answer.js";
import type { WaiterKeys } from "../queue/waiter-keys.js";
import type { PushedGrants } from "./pushed-grants.js";
import {
  type HeldGrant,
  leaseOf,
  type TrackedClaim,
  type TrackedClaims,
  type WaitingClaim,
} from "./tracked-claims.js";

const CLOSE_MS = 500;
/** Core repeats a release twice at once. Only after that do we release the leftover. */
const LEFTOVER_MS = 500;
/** Heartbeats during the life of a waiter's lease. */
const BEATS = 3;

interface Tools {
  readonly leases: Leases;
  readonly leasePool: LeasePool;
  readonly waiterKeys: WaiterKeys;
  readonly trackedClaims: TrackedClaims;
  readonly notifications: Notifications;
  readonly pushedGrants: PushedGrants;
}

/** Records the state of our claims that core is told: grants, and places in the queue. */
export class ClaimStates {
  readonly #tools: Tools;
  #closed = false;

  constructor(tools: Tools) {
    this.#tools = tools;
  }

  /**
   * Other claims may keep its lease alive, so a claim that could not be released now is released
   * later.
   */
  releaseLater(ref: ReleaseRef, tracked: TrackedClaim | null): void {
    if (this.#closed) return;
    const until = systemClock.now() + LEFTOVER_MS;
    const lease = tracked === null ? null : leaseOf(tracked);
    this.#tools.trackedClaims.track({ kind: "leftover", ref, lease, until, tries: 0 });
  }

  /** The grant counts from the last confirmed keepalive of the lease of its key. */
  async grant(ref: GrantRef, holds: Holds, times: CallTimes): Promise<Granted | Gone> {
    const { leases, trackedClaims, notifications, pushedGrants } = this.#tools;
    const { self, record, marker } = this.#latest(ref, holds);
    const { lockDelayMs, tokens } = record;
    const lease = leases.find(self.lease);
    let [since, ttlMs] = [times.at, record.ttlMs];
    if (lease === null) {
      // A lease of another engine, or an old one of ours: it may have ended by now.
      const left = await leases.remainingOf(self, times.deadline);
      if (left === null || left.leastMs === 0) return { kind: "gone", why: "expired" };
      ttlMs = Math.min(ttlMs, left.leastMs);
    } else {
      since = lease.since;
      ttlMs = Math.min(ttlMs, lease.ttlMs);
      if (lockDelayMs > 0) {
        const marked = leases.current(record.ttlMs + lockDelayMs);
        since = Math.min(since, marked?.since ?? since);
      }
    }
    const known = this.forget(ref);
    const until = Math.max(since + ttlMs, known?.kind === "grant" ? known.until : 0);
    const { claimed } = record;
    trackedClaims.track({
      ...{ kind: "grant", ref: refOf(ref), self, claimed, until, tries: 0, lockDelayMs, marker },
      ...{ gone: false, leaving: known?.kind === "grant" && known.leaving },
      order: known?.kind === "grant" ? known.order : 0,
      doubtful: known?.kind === "grant" ? known.doubtful : new Set(),
    });
    notifications.listen(self.created);
    pushedGrants.wakeBehind(self);
    const isMarked = lockDelayMs === 0 || (marker !== null && leases.find(marker) !== null);
    if (lease === null || !isMarked) notifications.notifySoon(ref.resource);
    const token = tokenOf(self);
    return { kind: "granted", token, tokens, since: onCoreClock(since, times), ttlMs };
  }

  /**
   * Records a waiter's place. A push may have granted the claim after the queue was read. A waiter
   * must never replace a grant: our own process would delete the grant's key when the waiter sends
   * no more heartbeats. So there is no await between the look at the tracked claims and their
   * change.
   */
  async queue(ref: GrantRef, waits: Waits, times: CallTimes): Promise<Queued | Granted | Gone> {
    const { leasePool, trackedClaims, notifications, pushedGrants } = this.#tools;
    const grant = trackedClaims.grant(ref);
    if (grant?.gone) return { kind: "gone", why: "expired" };
    if (grant !== null) return this.grant(ref, holdsAsKnown(grant), times);
    const { self, holders, before } = waits;
    const graceMs = leasePool.waiterMs(readRecord(self)!.ttlMs);
    const known = trackedClaims.waiter(ref);
    const position = waits.position ?? known?.position ?? 0;
    const offsetMs = Math.min(times.startedAt - times.at, known?.offsetMs ?? Infinity);
    // From now: core counts the time to its next heartbeat from this answer, however late it comes.
    const until = systemClock.now() + graceMs;
    const waiting: WaitingClaim = known ?? {
      ...{ kind: "waiter", ref: refOf(ref), self, position, offsetMs, until, tries: 0 },
      ...{ graceMs, interests: [], lastBefore: null, deletionSent: false, holders, readAt: 0 },
    };
    trackedClaims.track(Object.assign(waiting, { self, position, offsetMs, until, tries: 0 }));
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
    const known = this.#tools.trackedClaims.grant(ref);
    const isNewer = known !== null && BigInt(known.self.modified) > BigInt(holds.self.modified);
    return isNewer ? holdsAsKnown(known) : holds;
  }

  forget(ref: GrantRef): TrackedClaim | null {
    const tracked = this.#tools.trackedClaims.forget(ref);
    if (tracked?.kind === "waiter") this.#tools.pushedGrants.unfollow(tracked);
    return tracked;
  }

  /** Removes our waiters, so that those behind them need not wait for their leases to expire. */
  async close(): Promise<void> {
    const { waiterKeys, trackedClaims, notifications, pushedGrants } = this.#tools;
    this.#closed = true;
    pushedGrants.close();
    notifications.close();
    const deadline = systemClock.now() + CLOSE_MS;
    const removed = Promise.all(
      trackedClaims.waiters.map(({ self }) => waiterKeys.remove(self, deadline)),
    );
    const late = sleep(systemClock, CLOSE_MS, undefined, false);
    await Promise.race([removed, late]).catch((error: unknown) =>
      emit("failed", () => ({ during: "close", error })),
    );
    removed.catch(() => {});
    trackedClaims.close();
  }
}

/** A grant as this process knows it. */
function holdsAsKnown({ self, marker }: HeldGrant): Holds {
  return { kind: "holds", self, record: readRecord(self)!, marker };
}

function refOf({ resource, grantId }: GrantRef): GrantRef {
  return { resource, grantId };
}
