import type { Call, Failed, Gone, Renewed } from "../../engine.js";
import { EngineError, LeaseLostError } from "../../errors.js";
import { channels, emit } from "../../events.js";
import { type Caller, expectAnswers } from "../calling/call.js";
import { callRepeatedly } from "../calling/repeated-call.js";
import type { HeldLease } from "../holding/lease.js";
import { regroup } from "./regroup.js";
import { type RenewalAnswer, RenewalBatch, type RenewalOutcome } from "./renewal-batch.js";
import type { RenewalGroup } from "./renewal-group.js";
import { type RenewalSchedule, tellDangerOrLoss } from "./renewal-schedule.js";

const FIRST_REPEAT_MS = 50;

/** Sends renewals, and applies the answers. */
export class RenewalSender {
  readonly #caller: Caller;
  readonly #schedule: RenewalSchedule;

  constructor(caller: Caller, schedule: RenewalSchedule) {
    this.#caller = caller;
    this.#schedule = schedule;
  }

  /**
   * All groups of a batch have the same timeout: a lease with a short timeout must not cost one
   * with a long timeout its renewal.
   */
  send(groups: readonly RenewalGroup[], timeoutMs: number, now: number): void {
    const batch = new RenewalBatch(groups);
    const count = batch.refs.length;
    const ask = (call: Call) => {
      batch.expect(call.startedAt);
      return this.#caller.engine.renew(batch.refs, call);
    };
    const over = this.#caller
      .call(timeoutMs, ask, false)
      .then((answers) => expectAnswers(this.#caller, count, answers))
      .catch((error: unknown) => new Array<RenewalAnswer>(count).fill(failedBy(error)))
      .then((answers) => this.#settle(batch, answers));
    for (const group of groups) {
      group.renewing = { over };
      this.#schedule.set(group, now);
    }
  }

  /** Sends one renewal for one holder, who awaits the result. */
  async sendNow(lease: HeldLease, ttlMs: number): Promise<void> {
    const { grant } = lease;
    const { clock, engine } = this.#caller;
    // A batch under way may carry another ttl. The validity must come from the renewal that is sent
    // last.
    while (grant.group.renewing) await grant.group.renewing.over;
    lease.assertHeld();
    const group = grant.leaveGroup();
    const { resource, grantId, index } = grant;
    group.willAsk(ttlMs);
    const calling = callRepeatedly<Renewed | Gone>(this.#caller, group.callTimeoutMs, (call) => {
      group.expect(call.startedAt, ttlMs);
      this.#schedule.set(group, call.startedAt);
      return engine.renew([{ resource, grantId, ttlMs, index }], call);
    });
    const over = calling.answer.then(ignore, ignore).then(() => {
      group.renewing = null;
      this.#schedule.set(group, clock.now());
    });
    group.renewing = { over, skipRests: () => calling.skipRests() };
    // The call may have to wait for its turn; the group is watched until then.
    this.#schedule.set(group, clock.now());
    const answer = await calling.answer.catch((error: unknown) => {
      throw lossBy(lease, error);
    });
    this.#apply([{ group, answer, index }]);
    if (answer.kind === "gone" || lease.lost) throw lease.lost ?? lostBy(lease, answer);
  }

  #settle(batch: RenewalBatch, answers: readonly RenewalAnswer[]): void {
    const outcomes = batch.settle(answers);
    for (const { group } of outcomes) group.renewing = null;
    this.#apply(outcomes);
  }

  /**
   * Applies all answers before it calls any listener: a listener may release other leases, or hand
   * them over.
   */
  #apply(outcomes: readonly RenewalOutcome[]): void {
    const now = this.#caller.clock.now();
    const renewed: RenewalGroup[] = [];
    const tellings: (() => void)[] = [];
    for (const { group, answer, index } of outcomes) {
      // The lease was released or lost during the renewal.
      if (!group.managed) this.#schedule.drop(group);
      // Local validity ended first: the lease is lost, whatever the backend says now.
      else if (now >= group.lostAt) tellings.push(() => tellDangerOrLoss(group, now));
      else if (answer.kind === "renewed") {
        group.confirm(answer);
        renewed.push(group);
        const tookMs = now - answer.since;
        if (channels.renewed.hasSubscribers)
          tellings.push(tellingEach("renewed", group, { tookMs }));
      } else if (answer.kind === "failed") {
        this.#planRepeat(group, now);
        const error = this.#caller.failure(answer);
        tellings.push(tellingEach("renewal-failed", group, { error }));
      } else if (answer.why === "revoked" && index < group.grants[0]!.index) {
        // The revocation was for a holder that has handed the lease over. A renewal by the present
        // holder lifts it.
        group.renewAt = 0;
        this.#schedule.set(group, now);
      } else tellings.push(() => lose(group, answer));
    }
    const goOn = regroup(renewed, (absorbed) => this.#schedule.drop(absorbed));
    for (const group of goOn) this.#planNext(group, now);
    for (const tell of tellings) tell();
  }

  #planNext(group: RenewalGroup, now: number): void {
    group.renewAt = Infinity;
    this.#schedule.plan(group);
    if (group.askAgain) group.renewAt = 0;
    group.askAgain = false;
    this.#schedule.set(group, now);
  }

  /**
   * An unknown outcome neither extends nor ends a lease: the renewal is repeated until local
   * validity ends.
   */
  #planRepeat(group: RenewalGroup, now: number): void {
    const delayMs = group.failures === 0 ? 0 : FIRST_REPEAT_MS * 2 ** (group.failures - 1);
    group.failures++;
    group.renewAt = now + Math.min(delayMs, group.renewEveryMs / 2);
    this.#schedule.set(group, now);
  }
}

function ignore(): void {}

/** Returns a function that emits the event for each lease that still uses its grant by then. */
function tellingEach(
  name: "renewed" | "renewal-failed",
  group: RenewalGroup,
  more: { readonly tookMs: number } | { readonly error: Error },
): () => void {
  const { leases } = group;
  return () => {
    for (const lease of leases) {
      if (!lease.isManaged) continue;
      emit(name, () => ({ ...lease.subject(), ...more, remainingMs: lease.remainingMs() }));
    }
  };
}

/**
 * Loses the lease that uses the grant now: the grant may have been handed over since the answer
 * came.
 */
function lose({ managed, leases }: RenewalGroup, { why }: Gone): void {
  if (managed) leases[0]!.lose(why === "unknown" ? "expired" : why, why !== "revoked");
}

/** The attempts may outlast the lease. It is lost then, and the last failure becomes the cause. */
function lossBy(lease: HeldLease, error: unknown): unknown {
  if (lease.held || lease.lost === null) return error;
  lease.lost.cause ??= error;
  return lease.lost;
}

function failedBy(error: unknown): Failed {
  const hadNoEffect = error instanceof EngineError && error.effect === "none";
  return { kind: "failed", effect: hadNoEffect ? "none" : "unknown", error: error as Error };
}

function lostBy(lease: HeldLease, answer: Gone | Renewed): LeaseLostError {
  const why = answer.kind === "gone" && answer.why !== "unknown" ? answer.why : "expired";
  return new LeaseLostError(lease.resource, lease.token, why, 0);
}
