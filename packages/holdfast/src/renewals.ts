import { type Backend, expectAnswers } from "./backend.js";
import { isKept, joined, leasesOf, type Ward } from "./company.js";
import type { Call, Failed, Gone, Renewed } from "./engine.js";
import { EngineError, LeaseLostError } from "./errors.js";
import { channels, emit } from "./events.js";
import { type Answer, Flight } from "./flight.js";
import type { Grant } from "./grant.js";
import type { HeldLease } from "./lease.js";
import { type Plans, watch } from "./plans.js";

const FIRST_REPEAT_MS = 50;

interface Outcome {
  readonly ward: Ward;
  readonly answer: Answer;
  /** Which token was in use when the renewal was sent. */
  readonly index: number;
}

/** Asks for renewals, and makes of the answers what they mean. */
export class Renewals {
  readonly #backend: Backend;
  readonly #plans: Plans;

  constructor(backend: Backend, plans: Plans) {
    this.#backend = backend;
    this.#plans = plans;
  }

  /** One batch is of one timeout: a hasty lease must not cost a patient one its renewal. */
  send(wards: readonly Ward[], timeoutMs: number, startedAt: number): void {
    const flight = new Flight(wards);
    const count = flight.refs.length;
    const ask = (call: Call) => {
      flight.expect(call.startedAt);
      return this.#backend.engine.renew(flight.refs, call);
    };
    const work = this.#backend
      .call(timeoutMs, ask, false)
      .then((answers) => expectAnswers(this.#backend, count, answers))
      .catch((error: unknown) => new Array<Answer>(count).fill(failedBy(error)))
      .then((answers) => this.#land(flight, answers));
    for (const ward of wards) {
      ward.leader.renewing = work;
      this.#plans.schedule(ward, startedAt);
    }
  }

  /** One renewal for one caller, who wants to know how it went. */
  async sendNow(lease: HeldLease, ttlMs: number): Promise<void> {
    const { grant } = lease;
    const { clock, engine } = this.#backend;
    // A batch under way may carry another ttl; whichever is sent last must be the one we believe.
    while (grant.leader.renewing) await grant.leader.renewing;
    lease.assertHeld();
    this.#plans.part(grant);
    const { resource, grantId, index, callTimeoutMs } = grant;
    grant.willAsk(ttlMs);
    const work = this.#backend.insist<Renewed | Gone>(callTimeoutMs, (call) => {
      grant.expect(call.startedAt, ttlMs);
      this.#plans.schedule(grant, call.startedAt);
      return engine.renew([{ resource, grantId, ttlMs, index }], call);
    });
    grant.renewing = work.then(ignore, ignore).then(() => {
      grant.renewing = null;
      this.#plans.schedule(grant, clock.now());
    });
    // It may be sent later, and is looked after until then.
    this.#plans.schedule(grant, clock.now());
    const answer = await work.catch((error: unknown) => {
      throw lossBy(lease, error);
    });
    this.#take([{ ward: grant, answer, index }]);
    if (answer.kind === "gone" || lease.lost) throw lease.lost ?? lostBy(lease, answer);
  }

  #land(flight: Flight, answers: readonly Answer[]): void {
    const outcomes: Outcome[] = [];
    flight.land(answers, (ward, answer, index) => {
      ward.leader.renewing = null;
      outcomes.push({ ward, answer, index });
    });
    this.#take(outcomes);
  }

  /**
   * All that the answers say is written down before anybody is told: whoever hears of it may release
   * others, or pass them on.
   */
  #take(outcomes: readonly Outcome[]): void {
    const now = this.#backend.clock.now();
    const renewed: Ward[] = [];
    const told: (() => void)[] = [];
    for (const { ward, answer, index } of outcomes) {
      const { leader } = ward;
      // It may have been released or lost while the question travelled, or nobody is left in it.
      if (!isKept(ward)) {
        this.#plans.drop(ward);
        continue;
      }
      // Local validity ran out first: the lease is lost, whatever the backend says now.
      if (now >= leader.lostAt) told.push(() => watch(ward, now));
      else if (answer.kind === "renewed") {
        leader.confirm(answer);
        renewed.push(ward);
        const tookMs = now - answer.since;
        if (channels.renewed.hasSubscribers) told.push(tellingEach("renewed", ward, { tookMs }));
      } else if (answer.kind === "failed") {
        this.#planRepeat(ward, now);
        const error = this.#backend.failure(answer);
        told.push(tellingEach("renewal-failed", ward, { error }));
      } else if (answer.why === "revoked" && index < leader.index) {
        // The revocation was for a holder that has passed the lease on. A renewal by the one who has it
        // now lifts it.
        leader.renewAt = 0;
        this.#plans.schedule(ward, now);
      } else {
        told.push(() => lose(leader, answer));
      }
    }
    for (const ward of joined(renewed, (moved) => this.#plans.drop(moved))) {
      this.#planNext(ward, now);
    }
    for (const tell of told) tell();
  }

  #planNext(ward: Ward, now: number): void {
    const { leader } = ward;
    leader.renewAt = Infinity;
    this.#plans.plan(ward);
    if (leader.askAgain) leader.renewAt = 0;
    leader.askAgain = false;
    this.#plans.schedule(ward, now);
  }

  /** Unknown neither extends nor ends a lease: it is tried again until local validity runs out. */
  #planRepeat(ward: Ward, now: number): void {
    const { leader } = ward;
    const delayMs = leader.failures === 0 ? 0 : FIRST_REPEAT_MS * 2 ** (leader.failures - 1);
    leader.failures++;
    leader.renewAt = now + Math.min(delayMs, leader.renewEveryMs / 2);
    this.#plans.schedule(ward, now);
  }
}

function ignore(): void {}

/** Of each lease that stands on its grant now and still does when it is told. */
function tellingEach(
  name: "renewed" | "renewal-failed",
  ward: Ward,
  more: { readonly tookMs: number } | { readonly error: Error },
): () => void {
  const leases = leasesOf(ward);
  return () => {
    for (const lease of leases) {
      if (!lease.isKept) continue;
      emit(name, () => ({ ...lease.subject(), ...more, remainingMs: lease.remainingMs() }));
    }
  };
}

/** Whoever has it by now: it may have been passed on since the answer came. */
function lose({ kept, lease }: Grant, { why }: Gone): void {
  if (kept) lease!.lose(why === "unknown" ? "expired" : why, why !== "revoked");
}

/** Tries may outlast the lease: then it is lost, and why the last of them failed is the cause. */
function lossBy(lease: HeldLease, error: unknown): unknown {
  if (lease.held || lease.lost === null) return error;
  lease.lost.cause ??= error;
  return lease.lost;
}

function isWithoutEffect(error: unknown): boolean {
  return error instanceof EngineError && error.effect === "none";
}

function failedBy(error: unknown): Failed {
  const effect = isWithoutEffect(error) ? "none" : "unknown";
  return { kind: "failed", effect, error: error as Error };
}

function lostBy(lease: HeldLease, answer: Gone | Renewed): LeaseLostError {
  const why = answer.kind === "gone" && answer.why !== "unknown" ? answer.why : "expired";
  return new LeaseLostError(lease.resource, lease.token, why, 0);
}
