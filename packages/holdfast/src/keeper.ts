import type { Backend } from "./backend.js";
import { grantsOf, isKept, sizeOf, type Ward } from "./company.js";
import type { Grant } from "./grant.js";
import type { HeldLease } from "./lease.js";
import { Plans, watch } from "./plans.js";
import { Renewals } from "./renewals.js";

// Renewals due within this part of their interval travel in the same batch.
const BATCH_AHEAD = 0.1;
const MAX_BATCH = 1_000;
const BLINK_MS = 10;

/** Renews all leases of one engine, in batches, from one timer. */
export class Keeper {
  readonly #backend: Backend;
  readonly #plans: Plans;
  readonly #renewals: Renewals;
  /** Those that came in this turn of the event loop and are not planned yet. */
  #fresh: Grant[] = [];
  /** Whether those that came last were given back in the same turn. */
  #isBrief = false;
  #stepsSeen: number;

  constructor(backend: Backend) {
    this.#backend = backend;
    this.#plans = new Plans(backend.clock, () => this.#look());
    this.#renewals = new Renewals(backend, this.#plans);
    this.#stepsSeen = backend.clock.steps;
  }

  get grants(): readonly Grant[] {
    this.#planFresh();
    return this.#plans.wards.flatMap(grantsOf);
  }

  /**
   * Also for a grant that is kept already, when it was passed on to another lease. Its holder should hear
   * of it first, so it is planned at the end of the turn. That is a turn more of the event loop: where
   * the last ones were given back before it ended, to plan at once costs less.
   */
  add(grant: Grant): void {
    grant.kept = true;
    // Whoever it was passed to has terms of its own, and was not told of any danger.
    this.#plans.part(grant);
    grant.inDangerTold = false;
    if (this.#isBrief) this.#planFirst(grant, this.#backend.clock.now());
    else if (!grant.fresh) {
      grant.fresh = true;
      if (this.#fresh.push(grant) === 1) setImmediate(() => this.#planFresh());
    }
  }

  #planFresh(): void {
    if (this.#fresh.length === 0) return;
    const fresh = this.#fresh;
    this.#fresh = [];
    const now = this.#backend.clock.now();
    this.#isBrief = true;
    for (const grant of fresh) {
      grant.fresh = false;
      if (!grant.kept) continue;
      this.#isBrief = false;
      this.#planFirst(grant, now);
    }
  }

  #planFirst(grant: Grant, now: number): void {
    this.#plans.plan(grant);
    if (grant.unclaimed) this.#claimSoon(grant, now);
    this.#plans.schedule(grant, now);
  }

  /**
   * A pushed grant must be renewed before its claim window ends. A holder that is done within a blink
   * needs no renewal at all, so this one waits for that blink.
   */
  #claimSoon(grant: Grant, now: number): void {
    const leftMs = grant.validUntil - now;
    grant.renewAt = Math.min(grant.renewAt, now + Math.min(BLINK_MS, leftMs / 10));
  }

  /** Synchronous, so that a release that has begun cannot be followed by a renewal. */
  remove(grant: Grant): void {
    if (!grant.kept) return;
    grant.kept = false;
    this.#plans.part(grant);
    this.#plans.drop(grant);
  }

  /** Renews whatever is held of one resource now: the backend said that something changed. */
  renewSoon(resource: string): void {
    const concerned = this.grants.filter((grant) => grant.resource === resource);
    if (concerned.length === 0) return;
    const now = this.#backend.clock.now();
    for (const grant of concerned) {
      this.#plans.part(grant);
      grant.renewAt = 0;
      // A renewal under way may have been carried out before the change; its answer says nothing.
      grant.askAgain = grant.renewing !== null;
      this.#plans.schedule(grant, now);
    }
    this.#look();
    for (const grant of concerned) if (!grant.wantsRenewal) this.#checkOnce(grant);
  }

  /** A lease that is not renewed cannot learn of a revocation that way; it asks. */
  #checkOnce(grant: Grant): void {
    const { lease, mode, resource } = grant;
    if (lease === null) return;
    const sequence = { resource, mode, token: lease.token };
    const { engine } = this.#backend;
    const asked = this.#backend.call(lease.terms.callTimeoutMs, (call) =>
      engine.check(sequence, call),
    );
    const told = asked.then((alive) => {
      if (alive || !grant.kept) return;
      // The one to whom it was passed on meanwhile has another token.
      if (grant.lease !== lease) this.#checkOnce(grant);
      // Whether the grant is still there is more than we were told: a successor may hold already.
      else lease.lose("revoked", true);
    });
    this.#backend.inBackground("check", resource, told);
  }

  renewNow(lease: HeldLease, ttlMs: number): Promise<void> {
    return this.#renewals.sendNow(lease, ttlMs);
  }

  #look(): void {
    const { clock } = this.#backend;
    this.#isBrief = false;
    this.#plans.rest();
    const now = clock.now();
    if (clock.steps !== this.#stepsSeen) this.#renewAll(now);
    const batches = new Map<number, Ward[]>();
    for (const ward of this.#due(now)) {
      // Whoever was told of a loss just now may have released others that are due, or renewed them.
      if (isKept(ward) && ward.leader.renewing === null)
        addTo(batches, ward.leader.callTimeoutMs, ward);
    }
    for (const [timeoutMs, wards] of batches) {
      for (const batch of packed(wards)) this.#renewals.send(batch, timeoutMs, now);
    }
    this.#plans.goOn(now);
  }

  /** The wall clock was set. That ends nothing, but other clocks may have moved with it. */
  #renewAll(now: number): void {
    this.#stepsSeen = this.#backend.clock.steps;
    this.#planFresh();
    for (const ward of this.#plans.wards) {
      ward.leader.renewAt = now;
      this.#plans.schedule(ward, now);
    }
  }

  /**
   * Those to renew now. Those that are due soon go along only where somebody is due: otherwise every
   * look would be a renewal, and the jitter that keeps processes apart would be lost. What fills a
   * batch by itself goes alone, so that a hundred of them are spread by their jitter.
   */
  #due(now: number): Iterable<Ward> {
    // One that is passed on meanwhile may be due a second time.
    const due = new Set<Ward>();
    const later: Ward[] = [];
    const by = ({ leader }: Ward) => (due.size > 0 ? now + leader.renewEveryMs * BATCH_AHEAD : now);
    for (let ward = this.#plans.takeFirst(by); ward; ward = this.#plans.takeFirst(by)) {
      watch(ward, now);
      if (!isKept(ward)) continue;
      const { renewing, wantsRenewal, renewAt } = ward.leader;
      const isDue = renewAt <= (sizeOf(ward) < MAX_BATCH ? by(ward) : now);
      if (renewing === null && wantsRenewal && isDue) due.add(ward);
      else later.push(ward);
    }
    for (const ward of later) this.#plans.schedule(ward, now);
    return due;
  }
}

/** In their order, as many to a batch as it may hold. */
function packed(wards: readonly Ward[]): readonly (readonly Ward[])[] {
  const batches: Ward[][] = [];
  let size = MAX_BATCH;
  for (const ward of wards) {
    size += sizeOf(ward);
    if (size <= MAX_BATCH) batches.at(-1)!.push(ward);
    else {
      batches.push([ward]);
      size = sizeOf(ward);
    }
  }
  return batches;
}

function addTo<K, V>(groups: Map<K, V[]>, key: K, value: V): void {
  const group = groups.get(key);
  if (group === undefined) groups.set(key, [value]);
  else group.push(value);
}
