import { sleep, systemClock } from "../../../core/runtime/clock.js";
import type { Claim, Gone, Granted, GrantRef, Queued, ReleaseRef } from "../../../engine.js";
import { emit } from "../../../events.js";
import type { EtcdClient } from "../client/client.js";
import { type CallTimes, onCoreClock } from "../client/deadlines.js";
import { created, del, found, get, type KeyValue, put, unchanged } from "../client/requests.js";
import type { LeasePool } from "../leases/lease-pool.js";
import type { Leases } from "../leases/leases.js";
import { Notifications } from "../notifications/notifications.js";
import { Watches } from "../notifications/watches.js";
import {
  type Claims,
  type Hint,
  type Holds,
  holdsOf,
  type Verdict,
  type Waits,
} from "../queue/claims.js";
import { type Keys, markerOf } from "../queue/keys.js";
import { type Ahead, isSame, readEntry, tokenOf, viewsOf } from "../queue/queue.js";
import { FIRST, READ_WITHIN_MS } from "../queue/queue-reader.js";
import { Holdings, type TrackedClaim, type WaitingClaim } from "./holdings.js";
import type { Releases } from "./releases.js";

const LEAVING_MS = 500;
const LOOK_MS = 5_000;
const EXPIRE_MS = 1_000;
const MOST_CHANGES = 3;
/** Core repeats a release twice at once. Only after that do we release the leftover. */
const LEFTOVER_MS = 500;
/** A waiter becomes a holder on its waiter lease until this part has passed; a renewal moves it later. */
const FRESH = 0.4;
/** Heartbeats during the life of a waiter's lease. */
const BEATS = 3;

interface Tools {
  readonly client: EtcdClient;
  readonly keys: Keys;
  readonly leases: Leases;
  readonly leasePool: LeasePool;
  readonly claims: Claims;
  readonly releases: Releases;
  readonly engineId: string;
}

type GrantListener = (waiter: GrantRef, granted: Granted) => void;

/** The state of an engine's claims: grants, places in the queue, and their notifications. */
export class ClaimStates {
  readonly holdings = new Holdings(
    (kept) => this.#expire(kept),
    (kept) => this.#leases.retire(leaseOf(kept)),
  );
  readonly notifications: Notifications;
  readonly #client: EtcdClient;
  readonly #keys: Keys;
  readonly #leases: Leases;
  readonly #leasePool: LeasePool;
  readonly #claims: Claims;
  readonly #releases: Releases;
  readonly #watches: Watches;
  readonly #grantListeners = new Set<GrantListener>();
  /** By key, our waiters that wait for its end. */
  readonly #behind = new Map<string, Set<WaitingClaim>>();
  #left = false;

  constructor({ client, keys, leases, leasePool, claims, releases, engineId }: Tools) {
    this.#client = client;
    this.#keys = keys;
    this.#leases = leases;
    this.#leasePool = leasePool;
    this.#claims = claims;
    this.#releases = releases;
    this.#watches = new Watches(client);
    this.notifications = new Notifications(client, keys, engineId, leases, this.holdings);
    claims.hintFor = (claim) => this.#hintFor(claim);
    client.onMove = () => {
      this.#watches.move();
      this.notifications.move();
    };
  }

  onGrant(listener: GrantListener): () => void {
    this.#grantListeners.add(listener);
    return () => this.#grantListeners.delete(listener);
  }

  /** Other claims may keep its lease alive, so a claim that could not be released now is released later. */
  leaveBehind(ref: ReleaseRef, kept: TrackedClaim | null): void {
    if (this.#left) return;
    const until = systemClock.now() + LEFTOVER_MS;
    const lease = kept === null ? null : leaseOf(kept);
    this.holdings.keep({ kind: "leftover", ref, lease, until, tries: 0 });
  }

  /** The grant counts from the last confirmed keepalive of the lease of its key. */
  async grant(ref: GrantRef, holds: Holds, times: CallTimes): Promise<Granted | Gone> {
    const { self, entry, marker } = this.#latest(ref, holds);
    const { lockDelayMs, tokens } = entry;
    const lease = this.#leases.find(self.lease);
    let [since, ttlMs] = [times.at, entry.ttlMs];
    if (lease === null) {
      // A lease of another engine, or an old one of ours: it may have ended by now.
      const left = await this.#leases.leftOf(self, times.deadline);
      if (left === null || left.leastMs === 0) return { kind: "gone", why: "expired" };
      ttlMs = Math.min(ttlMs, left.leastMs);
    } else {
      since = lease.since;
      ttlMs = Math.min(ttlMs, lease.ttlMs);
      if (lockDelayMs > 0) {
        const mark = this.#leases.peek(entry.ttlMs + lockDelayMs);
        since = Math.min(since, mark?.since ?? since);
      }
    }
    const known = this.forget(ref);
    const until = Math.max(since + ttlMs, known?.kind === "grant" ? known.until : 0);
    const told = entry.claimed;
    this.holdings.keep({
      ...{ kind: "grant", ref: refOf(ref), self, told, until, tries: 0, lockDelayMs, marker },
      ...{ gone: false, leaving: known?.kind === "grant" && known.leaving },
      order: known?.kind === "grant" ? known.order : 0,
      doubtful: known?.kind === "grant" ? known.doubtful : new Set(),
    });
    this.notifications.listen(self.created);
    this.#wakeBehind(self);
    const isMarked = lockDelayMs === 0 || (marker !== null && this.#leases.find(marker) !== null);
    if (lease === null || !isMarked) this.notifications.tellSoon(ref.resource);
    const token = tokenOf(self);
    return { kind: "granted", token, tokens, since: onCoreClock(since, times), ttlMs };
  }

  /**
   * Records a waiter's place. A push may have granted the claim after the queue was read. A waiter must
   * never replace a grant: our own process would delete the grant's key when the waiter sends no more
   * heartbeats. So there is no await between the look at the holdings and their change.
   */
  async queue(ref: GrantRef, waits: Waits, times: CallTimes): Promise<Queued | Granted | Gone> {
    const grant = this.holdings.grant(ref);
    if (grant?.gone) return { kind: "gone", why: "expired" };
    if (grant !== null) return this.grant(ref, holdsOf(grant), times);
    const { self, holders, before } = waits;
    const graceMs = this.#leasePool.waiterMs(readEntry(self)!.ttlMs);
    const known = this.holdings.waiter(ref);
    const position = waits.position ?? known?.position ?? 0;
    const offsetMs = Math.min(times.startedAt - times.at, known?.offsetMs ?? Infinity);
    // From now: core counts the time to its next heartbeat from this answer, however late it comes.
    const until = systemClock.now() + graceMs;
    const waiting: WaitingClaim = known ?? {
      ...{ kind: "waiter", ref: refOf(ref), self, position, offsetMs, until, tries: 0 },
      ...{ graceMs, interests: [], lastBefore: null, givenUp: false, holders, readAt: 0 },
    };
    this.holdings.keep(Object.assign(waiting, { self, position, offsetMs, until, tries: 0 }));
    waiting.lastBefore = waits.lastBefore;
    waiting.holders = holders;
    waiting.readAt = waits.readAt ?? systemClock.now();
    if (before !== null) this.#follow(waiting, before);
    this.notifications.listen(self.created);
    return {
      ...{ kind: "queued", position, nextHeartbeatMs: graceMs / BEATS },
      holders: viewsOf(holders),
    };
  }

  /** A late answer must not undo what a renewal has changed since. */
  #latest(ref: GrantRef, holds: Holds): Holds {
    const known = this.holdings.grant(ref);
    const isNewer = known !== null && BigInt(known.self.modified) > BigInt(holds.self.modified);
    return isNewer ? holdsOf(known) : holds;
  }

  #follow(waiting: WaitingClaim, before: readonly Ahead[]): void {
    const same =
      before.length === waiting.interests.length &&
      waiting.interests.every((interest) => before.some((ahead) => isSame(ahead, interest)));
    if (same) return;
    this.#drop(waiting);
    const keyRange = this.#keys.rangeOf(waiting.ref.resource);
    waiting.interests = before.map((ahead) => ({
      ...{ keyRange, key: ahead.key, created: ahead.created },
      onEnd: () => void this.#turn(waiting, ahead),
    }));
    for (const interest of waiting.interests) {
      this.#watches.add(interest);
      const behind = this.#behind.get(interest.key) ?? new Set();
      this.#behind.set(interest.key, behind.add(waiting));
    }
  }

  /** Our last waiter in a queue that is too long for each claim to read. */
  #hintFor({ resource, mode, limit }: Claim): Hint | null {
    let last: WaitingClaim | null = null;
    const readAfter = systemClock.now() - READ_WITHIN_MS;
    for (const waiting of this.holdings.waiters) {
      const { ref, self, position, readAt, givenUp } = waiting;
      if (ref.resource !== resource || position < FIRST || readAt < readAfter || givenUp) continue;
      const entry = readEntry(self)!;
      if (mode === "shared" && (entry.mode !== "shared" || entry.limit !== limit)) continue;
      if (last === null || self.created > last.self.created) last = waiting;
    }
    return last;
  }

  /** A claim of ours was let in: shared waiters far behind it, which wait for it, may be next. */
  #wakeBehind({ key }: Ahead): void {
    for (const waiting of this.#behind.get(key) ?? []) {
      const isFar = waiting.position >= FIRST && readEntry(waiting.self)?.mode === "shared";
      if (isFar) setImmediate(() => void this.#turn(waiting, null));
    }
  }

  /**
   * A member before this waiter has ended, or was let in if `ended` is null. If anything fails here, the
   * next heartbeat corrects it.
   */
  async #turn(waiting: WaitingClaim, ended: Ahead | null): Promise<void> {
    const { ref, self, offsetMs, lastBefore } = waiting;
    const isStill = () => !this.#left && this.holdings.waiter(ref) === waiting;
    if (!isStill()) return;
    this.#drop(waiting);
    const at = systemClock.now();
    const times = { at, deadline: at + LOOK_MS, startedAt: at + offsetMs };
    try {
      const isLast = lastBefore !== null && ended !== null && isSame(lastBefore, ended);
      const isAll = isLast && !waiting.givenUp && this.#isFresh(self.lease, at);
      const entry = readEntry(self)!;
      const verdict: Verdict = isAll
        ? { kind: "holds", self, entry, marker: null }
        : await this.#claims.look(ref.resource, self, times.deadline);
      if (!isStill()) return;
      if (verdict.kind === "waits") {
        this.#follow(waiting, verdict.before ?? []);
        waiting.holders = verdict.holders;
        waiting.readAt = systemClock.now();
        waiting.position = verdict.position ?? waiting.position;
        waiting.lastBefore = verdict.lastBefore;
      } else if (verdict.kind === "holds") {
        const granted = await this.grant(ref, verdict, times);
        if (granted.kind !== "granted") return;
        for (const listener of this.#grantListeners) listener(ref, granted);
      }
    } catch (error) {
      emit("failed", () => ({ during: "push", error, resource: ref.resource }));
    }
  }

  /** Whether a grant on this lease would last long enough to be renewed. */
  #isFresh(id: string, at: number): boolean {
    const lease = this.#leases.find(id);
    return lease !== null && at - lease.since <= lease.ttlMs * FRESH;
  }

  /** Ends a claim that was not renewed or sent no heartbeat, although other claims keep its lease alive. */
  async #expire(kept: TrackedClaim): Promise<void> {
    const deadline = systemClock.now() + EXPIRE_MS;
    if (kept.kind === "leftover") {
      await this.#releases.release(kept.ref, deadline);
      return;
    }
    if (kept.kind === "waiter") return this.#giveUp(kept, deadline);
    const { key, created: revision } = kept.self;
    const success = [del(key)];
    let compare = created(key, revision);
    if (kept.leaving) {
      const now = await this.#read(key, deadline);
      if (now === undefined || readEntry(now)?.left) return;
      compare = unchanged(now);
    }
    if (kept.lockDelayMs > 0) {
      const mark = await this.#leases.dying(kept.lockDelayMs, deadline);
      success.push(put(markerOf(key), "", mark.id));
    }
    const txn = { compare: [compare], success, failure: [] };
    await this.#client.txn(txn, { deadline, repeatable: true });
  }

  /**
   * Deletes a waiter's key only in its current revision: the deletion may arrive late, after the waiter
   * became a holder and was told so. A waiter that became a holder without our knowledge is tracked as a
   * grant, and ends like a grant that nobody renews.
   */
  async #giveUp(waiting: WaitingClaim, deadline: number): Promise<void> {
    this.#drop(waiting);
    waiting.givenUp = true;
    const { key } = waiting.self;
    for (let changes = 0; changes < MOST_CHANGES; changes++) {
      const compare = [unchanged(waiting.self)];
      const txn = { compare, success: [del(key)], failure: [get(key)] };
      const answer = await this.#client.txn(txn, { deadline, repeatable: true });
      const self = found(answer, 0)[0];
      if (answer.succeeded || self === undefined) return;
      const entry = readEntry(self)!;
      const at = systemClock.now();
      const times = { at, deadline, startedAt: at + waiting.offsetMs };
      if (this.holdings.waiter(waiting.ref) !== waiting) return;
      if (entry.claimed) {
        await this.grant(waiting.ref, { kind: "holds", self, entry, marker: null }, times);
        return;
      }
      waiting.self = self;
    }
  }

  async #read(key: string, deadline: number): Promise<KeyValue | undefined> {
    const txn = { compare: [], success: [get(key)], failure: [] };
    return found(await this.#client.txn(txn, { deadline, repeatable: true }), 0)[0];
  }

  forget(ref: GrantRef): TrackedClaim | null {
    const kept = this.holdings.forget(ref);
    if (kept?.kind === "waiter") this.#drop(kept);
    return kept;
  }

  #drop(waiting: WaitingClaim): void {
    for (const interest of waiting.interests) {
      this.#watches.drop(interest);
      const behind = this.#behind.get(interest.key);
      behind?.delete(waiting);
      if (behind?.size === 0) this.#behind.delete(interest.key);
    }
    waiting.interests = [];
  }

  /** Removes our waiters, so that those behind them need not wait for their leases to expire. */
  async leave(): Promise<void> {
    this.#left = true;
    this.#grantListeners.clear();
    this.notifications.close();
    this.#watches.close();
    const deadline = systemClock.now() + LEAVING_MS;
    const left = Promise.all(
      this.holdings.waiters.map(({ self }) => this.#claims.remove(self, deadline)),
    );
    const late = sleep(systemClock, LEAVING_MS, undefined, false);
    await Promise.race([left, late]).catch((error: unknown) =>
      emit("failed", () => ({ during: "close", error })),
    );
    left.catch(() => {});
    this.holdings.close();
  }
}

function leaseOf(kept: TrackedClaim): string | null {
  return kept.kind === "leftover" ? kept.lease : kept.self.lease;
}

function refOf({ resource, grantId }: GrantRef): GrantRef {
  return { resource, grantId };
}
