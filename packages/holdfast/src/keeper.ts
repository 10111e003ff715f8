import { Agenda, type Entry, NOWHERE } from "./agenda.js";
import { type Backend, expectAnswers } from "./backend.js";
import type { Timer } from "./clock.js";
import type { Call, Failed, Gone, Renewed } from "./engine.js";
import { EngineError, LeaseLostError } from "./errors.js";
import { channels, emit } from "./events.js";
import type { Grant } from "./grant.js";
import { randomByte } from "./grant-id.js";
import type { HeldLease } from "./lease.js";

// However far the next renewal is, the clocks are looked at this often while anything is held, so
// that a suspended machine or a jump of the wall clock is noticed within a second.
const LOOK_EVERY_MS = 1_000;
// Renewals due within this part of their interval travel in the same batch.
const BATCH_AHEAD = 0.1;
const MAX_BATCH = 1_000;
const FIRST_REPEAT_MS = 50;
const BLINK_MS = 10;

/**
 * Grants whose renewal is under way. They are looked at together, for danger and loss, so that each
 * needs a place in the agenda of its own once a renewal: when it was answered.
 */
class Flight implements Entry {
  readonly grants: readonly Grant[];
  place = NOWHERE;

  constructor(grants: readonly Grant[]) {
    this.grants = grants;
  }
}

/** Renews all leases of one engine, in batches, from one timer. */
export class Keeper {
  readonly #backend: Backend;
  /** When each lease needs to be looked at: a hundred thousand of them must not cost a walk each time. */
  readonly #agenda = new Agenda<Grant | Flight>();
  /** Those that came in this turn of the event loop and are not planned yet. */
  #fresh: Grant[] = [];
  /** Whether those that came last were given back in the same turn. */
  #isBrief = false;
  #kept = 0;
  #timer: Timer | null = null;
  #wakeAt = Infinity;
  #stepsSeen: number;

  constructor(backend: Backend) {
    this.#backend = backend;
    this.#stepsSeen = backend.clock.steps;
  }

  get grants(): readonly Grant[] {
    this.#planFresh();
    return this.#agenda
      .items()
      .flatMap((entry) => (entry instanceof Flight ? entry.grants.filter(isInFlightOnly) : entry));
  }

  /**
   * Also for a grant that is kept already, when it was passed on to another lease. Its holder should hear
   * of it first, so it is planned at the end of the turn. That is a turn more of the event loop: where
   * the last ones were given back before it ended, to plan at once costs less.
   */
  add(grant: Grant): void {
    if (!grant.kept) this.#kept++;
    grant.kept = true;
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
    this.#plan(grant);
    if (grant.unclaimed) this.#claimSoon(grant, now);
    this.#schedule(grant, now);
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
    this.#agenda.delete(grant);
    if (--this.#kept > 0) return;
    this.#timer?.cancel();
    this.#timer = null;
    this.#wakeAt = Infinity;
  }

  /** Renews whatever is held of one resource now: the backend said that something changed. */
  renewSoon(resource: string): void {
    const concerned = this.grants.filter((grant) => grant.resource === resource);
    for (const grant of concerned) {
      grant.renewAt = 0;
      this.#agenda.set(grant, 0);
      // A renewal under way may have been carried out before the change; its answer says nothing.
      grant.askAgain = grant.renewing !== null;
    }
    if (concerned.length > 0) this.#look();
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
      if (!alive && grant.kept) grant.lease?.lose("revoked", false);
    });
    this.#backend.inBackground("check", resource, told);
  }

  /** One renewal for one caller, who wants to know how it went. */
  async renewNow(lease: HeldLease, ttlMs: number): Promise<void> {
    const { grant } = lease;
    // A batch under way may carry another ttl; whichever is sent last must be the one we believe.
    while (grant.renewing) await grant.renewing;
    lease.assertHeld();
    const { resource, grantId } = grant;
    const { clock, engine } = this.#backend;
    const timeoutMs = grant.callTimeoutMs;
    const onFailure = (error: unknown) => {
      if (!isWithoutEffect(error)) grant.unanswered(ttlMs);
    };
    const work = this.#backend.insist<Renewed | Gone>(
      timeoutMs,
      (call) => {
        grant.expect(call.startedAt, ttlMs);
        this.#schedule(grant, call.startedAt);
        return engine.renew([{ resource, grantId, ttlMs }], call);
      },
      onFailure,
    );
    grant.renewing = work.then(ignore, ignore).then(() => {
      grant.renewing = null;
      this.#schedule(grant, clock.now());
    });
    const answer = await work;
    this.#take(grant, answer, clock.now());
    if (answer.kind === "gone" || lease.lost) throw lease.lost ?? lostBy(lease, answer);
  }

  #look(): void {
    const { clock } = this.#backend;
    this.#isBrief = false;
    this.#timer?.cancel();
    this.#timer = null;
    this.#wakeAt = Infinity;
    const now = clock.now();
    const stepped = clock.steps !== this.#stepsSeen;
    this.#stepsSeen = clock.steps;
    if (stepped) {
      for (const grant of this.grants) {
        grant.renewAt = now;
        this.#agenda.set(grant, now);
      }
    }
    const batches = new Map<number, Grant[]>();
    for (const grant of this.#due(now)) {
      // Whoever was told of a loss just now may have released others that are due.
      if (grant.kept) addTo(batches, grant.callTimeoutMs, grant);
    }
    for (const [timeoutMs, grants] of batches) {
      for (let i = 0; i < grants.length; i += MAX_BATCH) {
        this.#renew(grants.slice(i, i + MAX_BATCH), timeoutMs, now);
      }
    }
    this.#wake(Math.min(this.#agenda.earliest, now + LOOK_EVERY_MS), now);
  }

  /**
   * Those to renew now. Those that are due soon go along only where somebody is due: otherwise every
   * look would be a renewal, and the jitter that keeps processes apart would be lost.
   */
  #due(now: number): Grant[] {
    const due: Grant[] = [];
    const later: (Grant | Flight)[] = [];
    for (let entry = this.#agenda.first; entry !== undefined; entry = this.#agenda.first) {
      const everyMs = entry instanceof Flight ? 0 : entry.renewEveryMs;
      const ahead = due.length > 0 ? everyMs * BATCH_AHEAD : 0;
      if (this.#agenda.earliest > now + ahead) break;
      this.#agenda.delete(entry);
      if (entry instanceof Flight) later.push(entry);
      else if (this.#watch(entry, now) < Infinity) {
        const renewable = entry.renewing === null && entry.wantsRenewal;
        (renewable && entry.renewAt <= now + ahead ? due : later).push(entry);
      }
    }
    for (const entry of later) {
      if (entry instanceof Flight) this.#watchAll(entry, now);
      else this.#schedule(entry, now);
    }
    return due;
  }

  /** One batch is of one timeout: a hasty lease must not cost a patient one its renewal. */
  #renew(batch: readonly Grant[], timeoutMs: number, startedAt: number): void {
    const { clock, engine } = this.#backend;
    const flight = new Flight(batch);
    const refs = batch.map(({ resource, grantId, ttlMs }) => ({ resource, grantId, ttlMs }));
    const ask = (call: Call) => {
      for (const grant of batch) grant.expect(call.startedAt, grant.ttlMs);
      return engine.renew(refs, call);
    };
    const landed = (take: (grant: Grant, i: number, now: number) => void) => {
      this.#agenda.delete(flight);
      const now = clock.now();
      for (let i = 0; i < batch.length; i++) {
        const grant = batch[i]!;
        take(grant, i, now);
        grant.renewing = null;
        this.#schedule(grant, now);
      }
    };
    const work = this.#backend
      .call(timeoutMs, ask, false)
      .then((answers) => expectAnswers(this.#backend, batch.length, answers))
      .then(
        (answers) => landed((grant, i, now) => this.#take(grant, answers[i]!, now)),
        (error: unknown) =>
          landed((grant, i, now) => {
            if (!isWithoutEffect(error)) grant.unanswered(refs[i]!.ttlMs);
            this.#failed(grant, error as Error, now);
          }),
      );
    for (const grant of batch) grant.renewing = work;
    this.#watchAll(flight, startedAt);
  }

  /** The lease may have been released, lost or passed on while the question travelled. */
  #take(grant: Grant, answer: Renewed | Gone | Failed, now: number): void {
    if (!grant.kept) return;
    // Local validity ran out first: the lease is lost, whatever the backend says now.
    if (now >= grant.lostAt && grant.lease!.noticeLoss(now)) return;
    if (answer.kind === "failed") {
      if (answer.effect === "unknown") grant.unanswered(grant.ttlMs);
      this.#failed(grant, this.#backend.failure(answer), now);
    } else if (answer.kind === "gone") {
      grant.lease!.lose(
        answer.why === "unknown" ? "expired" : answer.why,
        answer.why !== "revoked",
      );
    } else {
      grant.confirm(answer);
      grant.renewAt = Infinity;
      this.#plan(grant);
      if (grant.askAgain) grant.renewAt = 0;
      grant.askAgain = false;
      if (channels.renewed.hasSubscribers) tellRenewed(grant.lease!, now - answer.since);
    }
  }

  /** Unknown neither extends nor ends a lease: it is tried again until local validity runs out. */
  #failed(grant: Grant, error: Error, now: number): void {
    if (!grant.kept) return;
    const lease = grant.lease!;
    const delayMs = grant.failures === 0 ? 0 : FIRST_REPEAT_MS * 2 ** (grant.failures - 1);
    grant.failures++;
    grant.renewAt = now + Math.min(delayMs, grant.renewEveryMs / 2);
    emit("renewal-failed", () => ({
      ...lease.subject(),
      error,
      remainingMs: lease.remainingMs(),
    }));
  }

  /**
   * A jitter of a tenth keeps processes that started together from renewing together for ever. A
   * lease that a grant was passed to may want its renewal earlier, never later than planned.
   */
  #plan(grant: Grant): void {
    const at = grant.since + grant.renewEveryMs * (1 - randomByte() / 2_560);
    grant.renewAt = Math.min(grant.renewAt, at);
  }

  /** Tells danger or loss where it has come. Gives when to look again; Infinity when it is lost. */
  #watch(grant: Grant, now: number): number {
    const at = grant.watchAt;
    if (at > now) return at;
    const lease = grant.lease!;
    if (lease.noticeLoss(now)) return Infinity;
    grant.inDangerTold = true;
    emit("in-danger", () => ({ ...lease.subject(), remainingMs: lease.remainingMs() }));
    return grant.lostAt;
  }

  #watchAll(flight: Flight, now: number): void {
    let at = Infinity;
    for (const grant of flight.grants) if (grant.kept) at = Math.min(at, this.#watch(grant, now));
    this.#agenda.set(flight, at);
    this.#wake(Math.min(at, now + LOOK_EVERY_MS), now);
  }

  #schedule(grant: Grant, now: number): void {
    if (!grant.kept) return;
    const at = this.#nextLook(grant);
    this.#agenda.set(grant, at);
    this.#wake(Math.min(at, now + LOOK_EVERY_MS), now);
  }

  #nextLook(grant: Grant): number {
    const at = grant.watchAt;
    const renews = grant.renewing === null && grant.wantsRenewal;
    return renews ? Math.min(at, grant.renewAt) : at;
  }

  #wake(at: number, now: number): void {
    if (this.#kept === 0 || at >= this.#wakeAt) return;
    this.#timer?.cancel();
    this.#wakeAt = at;
    this.#timer = this.#backend.clock.timer(at - now, () => this.#look(), false);
  }
}

function ignore(): void {}

function tellRenewed(lease: HeldLease, tookMs: number): void {
  emit("renewed", () => ({ ...lease.subject(), tookMs, remainingMs: lease.remainingMs() }));
}

function isInFlightOnly(grant: Grant): boolean {
  return grant.kept && grant.place === NOWHERE;
}

function addTo<K, V>(groups: Map<K, V[]>, key: K, value: V): void {
  const group = groups.get(key);
  if (group === undefined) groups.set(key, [value]);
  else group.push(value);
}

function isWithoutEffect(error: unknown): boolean {
  return error instanceof EngineError && error.effect === "none";
}

function lostBy(lease: HeldLease, answer: Gone | Renewed): LeaseLostError {
  const why = answer.kind === "gone" && answer.why !== "unknown" ? answer.why : "expired";
  return new LeaseLostError(lease.resource, lease.token, why, 0);
}
