import type { Caller } from "../calling/call.js";
import type { Grant } from "../holding/grant.js";
import type { HeldLease } from "../holding/lease.js";
import type { RenewalGroup } from "./renewal-group.js";
import { RenewalSchedule, tellDangerOrLoss } from "./renewal-schedule.js";
import { RenewalSender } from "./renewal-sender.js";

// Renewals due within this part of their interval travel in the same batch.
const BATCH_AHEAD = 0.1;
const MAX_BATCH = 1_000;
const FIRST_RENEWAL_AFTER_MS = 10;
// Like queueMicrotask, at half its cost.
const MICROTASK = Promise.resolve();

/** Renews all leases of one engine, in batches, from one timer. */
export class Keeper {
  readonly #caller: Caller;
  readonly #schedule: RenewalSchedule;
  readonly #sender: RenewalSender;
  /** Groups that the next tick puts on the schedule. */
  #unplanned: RenewalGroup[] = [];
  // Called in a microtask: a nextTick that is set outside of one would run before the microtasks.
  readonly #planOnTick = () => process.nextTick(() => this.#planUnplanned());
  #stepsSeen: number;

  constructor(caller: Caller) {
    this.#caller = caller;
    this.#schedule = new RenewalSchedule(caller.clock, () => this.#look());
    this.#sender = new RenewalSender(caller, this.#schedule);
    this.#stepsSeen = caller.clock.steps;
  }

  get grants(): readonly Grant[] {
    this.#planUnplanned();
    return this.#schedule.groups.flatMap(({ grants }) => grants);
  }

  /**
   * Starts renewing a grant; also called when a cohort hands a managed grant to its next lease. The
   * grant is planned on the tick after the microtasks: the holder goes on first, and a lease that
   * it releases at once is never planned.
   */
  add({ group }: Grant): void {
    group.managed = true;
    group.dangerTold = false;
    if (this.#unplanned.push(group) === 1) void MICROTASK.then(this.#planOnTick);
  }

  /** Synchronous, so that no renewal follows a release that has begun. */
  remove(grant: Grant): void {
    if (!grant.group.managed) return;
    const group = grant.leaveGroup();
    group.managed = false;
    this.#schedule.drop(group);
  }

  /** Renews all grants of one resource now, because the backend reported a change. */
  renewSoon(resource: string): void {
    const concerned = this.grants.filter((grant) => grant.resource === resource);
    if (concerned.length === 0) return;
    const now = this.#caller.clock.now();
    for (const grant of concerned) {
      const group = grant.leaveGroup();
      group.renewAt = 0;
      // A renewal under way may have been carried out before the change, so its answer proves
      // nothing.
      group.askAgain = group.renewing !== null;
      group.renewing?.skipRests?.();
      this.#schedule.set(group, now);
    }
    this.#look();
    for (const grant of concerned) if (!grant.group.wantsRenewal) this.#checkOnce(grant);
  }

  renewNow(lease: HeldLease, ttlMs: number): Promise<void> {
    return this.#sender.sendNow(lease, ttlMs);
  }

  /** A lease that is not renewed learns of a revocation only by a check. */
  #checkOnce(grant: Grant): void {
    const { lease, mode, resource } = grant;
    if (lease === null) return;
    const sequence = { resource, mode, token: lease.token };
    const { engine } = this.#caller;
    const asked = this.#caller.call(lease.terms.callTimeoutMs, (call) =>
      engine.check(sequence, call),
    );
    const told = asked.then((alive) => {
      if (alive || !grant.group.managed) return;
      // The grant was handed over during the check; the new lease has another token.
      if (grant.lease !== lease) this.#checkOnce(grant);
      // The answer does not say whether the grant still exists: a successor may hold the resource
      // already.
      else lease.lose("revoked", true);
    });
    this.#caller.runInBackground("check", resource, told);
  }

  #planUnplanned(): void {
    if (this.#unplanned.length === 0) return;
    const groups = this.#unplanned;
    this.#unplanned = [];
    const now = this.#caller.clock.now();
    for (const group of groups) {
      if (!group.managed) continue;
      this.#schedule.plan(group);
      if (group.needsFirstRenewal) this.#renewFirstSoon(group, now);
      this.#schedule.set(group, now);
    }
  }

  /**
   * A pushed grant must be renewed before its claim window ends. A holder that releases within a
   * few milliseconds needs no renewal at all, so the renewal waits that long.
   */
  #renewFirstSoon(group: RenewalGroup, now: number): void {
    const leftMs = group.validUntil - now;
    group.renewAt = Math.min(group.renewAt, now + Math.min(FIRST_RENEWAL_AFTER_MS, leftMs / 10));
  }

  #look(): void {
    const { clock } = this.#caller;
    this.#schedule.pause();
    const now = clock.now();
    if (clock.steps !== this.#stepsSeen) this.#renewAll(now);
    const byTimeout = new Map<number, RenewalGroup[]>();
    for (const group of this.#due(now)) {
      // A listener of a loss may have released other leases that are due, or renewed them.
      if (!group.managed || group.renewing !== null) continue;
      const others = byTimeout.get(group.callTimeoutMs);
      if (others === undefined) byTimeout.set(group.callTimeoutMs, [group]);
      else others.push(group);
    }
    for (const [timeoutMs, groups] of byTimeout) {
      for (const batch of packed(groups)) this.#sender.send(batch, timeoutMs, now);
    }
    this.#schedule.resume(now);
  }

  /**
   * The wall clock jumped. No lease ends by that, but other clocks may have moved with it, so
   * renew.
   */
  #renewAll(now: number): void {
    this.#stepsSeen = this.#caller.clock.steps;
    this.#planUnplanned();
    for (const group of this.#schedule.groups) {
      group.renewAt = now;
      this.#schedule.set(group, now);
    }
  }

  /**
   * Takes the groups to renew now. Groups that are due soon join only when another one is due:
   * otherwise every look would renew something, and the jitter that spreads processes would be
   * lost. A group that fills a batch by itself goes alone, so that the jitter spreads a hundred of
   * them.
   */
  #due(now: number): Iterable<RenewalGroup> {
    // A set, because a listener that renews a lease by hand puts its group back, and it is taken
    // twice.
    const due = new Set<RenewalGroup>();
    const later: RenewalGroup[] = [];
    const by = ({ renewEveryMs }: RenewalGroup) =>
      due.size > 0 ? now + renewEveryMs * BATCH_AHEAD : now;
    for (;;) {
      const group = this.#schedule.takeFirst(by);
      if (group === undefined) break;
      tellDangerOrLoss(group, now);
      if (!group.managed) continue;
      const isDue = group.renewAt <= (group.size < MAX_BATCH ? by(group) : now);
      if (group.renewing === null && group.wantsRenewal && isDue) due.add(group);
      else later.push(group);
    }
    for (const group of later) this.#schedule.set(group, now);
    return due;
  }
}

/** Splits the groups into batches of at most MAX_BATCH grants, in order. */
function packed(groups: readonly RenewalGroup[]): readonly (readonly RenewalGroup[])[] {
  const batches: RenewalGroup[][] = [];
  let size = MAX_BATCH;
  for (const group of groups) {
    size += group.size;
    if (size <= MAX_BATCH) batches.at(-1)!.push(group);
    else {
      batches.push([group]);
      size = group.size;
    }
  }
  return batches;
}
