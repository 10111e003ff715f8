import type { Busy, Call, Gone, Granted, HolderView, Queued, Withdrawn } from "../../engine.js";
import { AcquireTimeoutError, EngineError, inDoubt } from "../../errors.js";
import type { Terms } from "../../options.js";
import type { Caller, CallListener } from "../calling/call.js";
import { abandonClaim, TOMBSTONE_MS } from "../calling/release.js";
import type { TokenCheck } from "../calling/token-check.js";
import { Grant } from "../holding/grant.js";
import { mintGrantId } from "../holding/grant-id.js";
import type { Timer } from "../runtime/clock.js";
import { ClaimPauses, type PauseTerms } from "./claim-pauses.js";
import { hadNoEffect, isPresent, SentClaim } from "./sent-claim.js";
import type { Outcome, Waiter, WaiterHeartbeats } from "./waiter-heartbeats.js";

/** What a claim needs to know of its surroundings. */
export interface ClaimContext {
  readonly caller: Caller;
  readonly tokenCheck: TokenCheck;
  /** Null when the engine keeps no queue; then the claim looks again by itself. */
  readonly heartbeats: WaiterHeartbeats | null;
  readonly drift: number;
}

export interface ClaimRequest extends PauseTerms {
  readonly terms: Terms;
  readonly tokens: number;
  readonly startedAt: number;
  readonly waitMs: number;
}

/** Who is told what becomes of a claim. */
export interface ClaimListener {
  /** One of these two is called, once. */
  granted(grant: Grant, now: number): void;
  failed(error: unknown, claim: PendingClaim): void;
  /** Told whom the claim waits for, whenever that is learned. */
  heard(holders: readonly HolderView[]): void;
}

type Step = "try" | "stand in the queue" | "claim again" | "withdraw";
type Answer = Granted | Busy | Queued | Gone | Withdrawn;

/** When patience is spent, an answer that is on its way is waited for so long at most. */
export const LAST_WORD_MS = 50;

/**
 * One claim, from the first call until it is granted, out of patience, aborted or failed. Whatever
 * the end, nothing stays behind: no waiter, no grant, no timer, no listener.
 *
 * It calls back instead of awaiting: nearly every claim is granted by its first answer, and a chain
 * of promises would cost more than all the rest of it.
 */
export class PendingClaim implements CallListener<Answer, SentClaim>, Waiter {
  readonly #context: ClaimContext;
  readonly #request: ClaimRequest;
  readonly #listener: ClaimListener;
  readonly #caller: Caller;
  #sent: SentClaim;
  /** The call under way, and what it asks for. The answers to earlier ones come too late. */
  #call: Call | null = null;
  #step: Step = "try";
  /** Counts what was to be sent: what waits for its turn is not sent once something else is to be. */
  #sends = 0;
  #wasExposed = false;
  #pauses: ClaimPauses | null = null;
  /** Whether the backend has said anything, and is heard still. */
  #answered = false;
  #failure: unknown = null;
  /** Whom it waits for, as far as it was ever heard. */
  #holders: readonly HolderView[] = [];
  /** The claim whose grant came too late, and was asked for once more. */
  #claimedAgain: SentClaim | null = null;
  #unknownInARow = 0;
  #retryAfterMs = Infinity;
  #waitTimer: Timer | null = null;
  /** Of the withdrawal: whether heartbeats failed before it, and whether an enqueue may follow it. */
  #wasUnheard = false;
  #mayBeOvertaken = false;
  #over = false;

  constructor(context: ClaimContext, request: ClaimRequest, listener: ClaimListener) {
    this.#context = context;
    this.#request = request;
    this.#listener = listener;
    this.#caller = context.caller;
    this.#sent = this.#newClaim();
  }

  start(): void {
    // close() must not take the engine away before this has cleaned up behind itself.
    this.#caller.began();
    const { waitMs } = this.#request;
    // Who does not wait at all is answered by its one call, or told by that call's own limit.
    if (waitMs > 0 && waitMs < Infinity) {
      this.#waitTimer = this.#caller.clock.timer(this.#leftMs(), () => this.#late(), true);
    }
    this.#ask();
  }

  /** Whether the backend has said anything. */
  get isAnswered(): boolean {
    return this.#answered;
  }

  /** Whether the backend left the last heartbeat unanswered: who holds it now, nobody knows. */
  get isUnheard(): boolean {
    return this.#sent.waiter !== null && this.#sent.failures > 0;
  }

  /** What the last request failed with, if none was answered since. One that was sent since may have an effect. */
  get failure(): unknown {
    return this.#sent.mayArrive ? inDoubt(this.#failure) : this.#failure;
  }

  /** Whom it waits for, as of the last heartbeat; undefined while it stands in no queue. */
  get holders(): readonly HolderView[] | undefined {
    return this.#sent.waiter === null ? undefined : this.#sent.holders;
  }

  abort(reason: unknown): void {
    if (!this.#over) this.#fail(reason);
  }

  #ask(): void {
    const { heartbeats } = this.#context;
    if (heartbeats !== null && this.#request.waitMs > 0) {
      // Before the claim is sent: a push may overtake the answer.
      heartbeats.add(this.#sent, this);
      this.#send("stand in the queue");
      return;
    }
    if (this.#request.waitMs > 0) this.#pausing().looking();
    this.#send("try");
  }

  #send(step: Step): void {
    this.#step = step;
    this.#call = null;
    this.#sends++;
    this.#caller.send(this.#request.terms.callTimeoutMs, this, this.#sent, true);
  }

  stillWants(): () => boolean {
    const send = this.#sends;
    return () => !this.#over && send === this.#sends;
  }

  send(call: Call, sent: SentClaim): Promise<Answer> {
    this.#call = call;
    this.#wasExposed = sent.isExposed;
    sent.isExposed = true;
    sent.unanswered++;
    const { engine } = this.#caller;
    if (this.#step === "stand in the queue") return engine.queue!.enqueue(sent.claim, call);
    if (this.#step === "withdraw") return engine.queue!.withdraw(sent.claim, call);
    return engine.tryAcquire(sent.claim, call);
  }

  answered(answer: Answer, call: Call, sent: SentClaim): void {
    sent.unanswered--;
    if (!this.#awaits(call)) {
      // Its tombstone may have ended before the request arrived.
      if (this.#caller.clock.now() - call.startedAt >= TOMBSTONE_MS) this.late(answer, sent);
      return;
    }
    try {
      this.#take(answer, call);
    } catch (error) {
      this.#threw(error);
    }
  }

  failed(error: unknown, call: Call, sent: SentClaim): void {
    const noEffect = hadNoEffect(error);
    sent.unanswered--;
    if (!noEffect) sent.lost = true;
    if (!this.#awaits(call)) return;
    if (noEffect) sent.isExposed = this.#wasExposed;
    try {
      this.#takeFailure(error);
    } catch (thrown) {
      this.#threw(thrown);
    }
  }

  /**
   * A tombstone awaits a request for two minutes. One that lay in a queue of the client's for longer is
   * carried out, and its answer tells of a grant that nobody has: it would block everyone for a ttl.
   */
  late(answer: Answer, sent: SentClaim): void {
    if (!sent.isOver || !isPresent(answer)) return;
    abandonClaim(this.#caller, sent.claim, true, this.#request.terms.callTimeoutMs);
  }

  /** What the heartbeats learned of our place, by a push or a heartbeat. */
  onOutcome(outcome: Outcome): void {
    this.#leaveLine();
    this.#call = null;
    this.#sends++;
    this.#noteAnswer();
    try {
      if (outcome === "unknown") this.#forgotten();
      else this.#accept(outcome);
    } catch (error) {
      this.#threw(error);
    }
  }

  #awaits(call: Call): boolean {
    return !this.#over && call === this.#call;
  }

  /** What strategies and engines throw ends the claim; what its end throws is nobody's but ours. */
  #threw(error: unknown): void {
    if (this.#over) throw error;
    this.#fail(error);
  }

  #take(answer: Answer, call: Call): void {
    const step = this.#step;
    if (step === "claim again") {
      if (answer.kind === "granted") this.#accept(answer);
      else this.#startOver();
      return;
    }
    this.#noteAnswer();
    if (step === "stand in the queue" && answer.kind === "queued") {
      this.#unknownInARow = 0;
      this.#context.heartbeats!.queued(this.#sent, answer, call.startedAt);
      this.#heard(answer.holders);
      return;
    }
    this.#leaveLine();
    if (answer.kind === "granted") this.#accept(answer);
    else if (step === "withdraw") this.#withdrawn();
    else if (step === "stand in the queue" || answer.kind === "gone") this.#forgotten();
    else this.#busy(answer as Busy);
  }

  #takeFailure(error: unknown): void {
    this.#leaveLine();
    if (this.#step === "claim again") this.#startOver();
    else if (this.#step !== "withdraw") this.#rideOut(error);
    else this.#fail(this.#wasUnheard ? error : this.#outOfPatience());
  }

  /**
   * Patience is spent, but the grant may have come first: then it is ours, and good. Whoever stands in
   * line asks for it; others have asked, or do so now. But no answer is worth more than a moment.
   */
  #late(): void {
    const giveUp = () => this.#fail(this.#outOfPatience());
    this.#waitTimer = this.#caller.clock.timer(LAST_WORD_MS, giveUp, true);
    if (this.#sent.waiter === null) return;
    this.#holders = this.#sent.holders;
    this.#wasUnheard = this.isUnheard;
    // Heartbeats have been failing, so our list of holders is stale.
    if (this.#wasUnheard) this.#answered = false;
    this.#mayBeOvertaken = this.#sent.mayArrive;
    this.#leaveLine();
    this.#send("withdraw");
  }

  #withdrawn(): void {
    // What is still on its way, a tombstone awaits; what has arrived is released.
    this.#sent.isExposed = this.#mayBeOvertaken;
    this.#fail(this.#outOfPatience());
  }

  /**
   * A grant may come so late that its lease would be lost on arrival: the belief in a pushed one counts
   * from the last heartbeat, which may be longer ago than a short ttl lasts. The backend may have it
   * still, and gives it a fresh ttl when the same claim is repeated. A new claim would lose its place.
   */
  #accept(granted: Granted): void {
    const sent = this.#sent;
    // A million grants that are held need not each remember how they were asked for.
    const unanswered = sent.mayArrive ? sent : null;
    const grant = new Grant(sent.claim, granted, this.#context.drift, unanswered);
    const now = this.#caller.clock.now();
    if (grant.group.isGoodFor(this.#request.terms.graceMs, now)) {
      this.#context.tokenCheck.check(grant);
      this.#end();
      this.#listener.granted(grant, now);
      return;
    }
    this.#heard([]);
    if (this.#isOutOfTime()) return;
    if (this.#claimedAgain === sent) {
      this.#startOver();
      return;
    }
    this.#claimedAgain = sent;
    // Outside the queue: no push that is still on its way can be taken for the answer.
    this.#send("claim again");
  }

  #startOver(): void {
    this.#giveUp();
    this.#sent = this.#newClaim();
    this.#ask();
  }

  /** The backend knows no such waiter any more, or keeps for it a grant that was revoked unseen. */
  #forgotten(): void {
    // A request that is still on its way would make a waiter of a claim that nobody knows, and a
    // revoked grant would keep its own claimant out for a whole ttl.
    this.#giveUp();
    this.#sent = this.#newClaim();
    this.#heard([]);
    if (this.#isOutOfTime()) return;
    // Once is a place that was lost. Again and again is a backend that must not be hammered.
    if (this.#unknownInARow++ > 0) this.#lookAgainLater();
    else this.#ask();
  }

  #busy({ holders, retryAfterMs = Infinity, remembered = false }: Busy): void {
    this.#retryAfterMs = retryAfterMs;
    // A request before this one may still be on its way.
    this.#sent.isExposed = this.#sent.mayArrive || remembered;
    this.#unknownInARow = 0;
    this.#heard(holders);
    if (!this.#isOutOfTime()) this.#lookAgainLater();
  }

  #noteAnswer(): void {
    this.#answered = true;
    this.#failure = null;
  }

  #heard(holders: readonly HolderView[]): void {
    this.#holders = holders;
    this.#listener.heard(holders);
  }

  /** Whether there is nothing more to do: who was just told of the holders may have ended it as well. */
  #isOutOfTime(): boolean {
    if (!this.#over && this.#leftMs() <= 0) this.#fail(this.#outOfPatience());
    return this.#over;
  }

  #lookAgainLater(): void {
    const goesOn = this.#consult((pauses) => pauses.afterBusy(this.#retryAfterMs, this.#leftMs()));
    if (!goesOn && !this.#over) this.#fail(this.#outOfPatience());
  }

  /** A retry strategy is the user's code. It may end this very claim, and nothing that it says counts then. */
  #consult(ask: (pauses: ClaimPauses) => boolean): boolean {
    const pauses = this.#pausing();
    try {
      return ask(pauses);
    } catch (error) {
      if (this.#over) return false;
      throw error;
    } finally {
      if (this.#over) pauses.end();
    }
  }

  #rideOut(error: unknown): void {
    this.#failure = error;
    const leftMs = this.#leftMs();
    const retry = error instanceof EngineError && error.retryable && leftMs > 0;
    // The same grantId again: if the lost request did arrive, the repeat finds its place in the queue.
    const goesOn = retry && this.#consult((pauses) => pauses.afterFailure(error, leftMs));
    if (!goesOn && !this.#over) this.#fail(this.failure);
  }

  #pausing(): ClaimPauses {
    this.#pauses ??= new ClaimPauses(this.#caller, this.#request, () => this.#askAgain());
    return this.#pauses;
  }

  #askAgain(): void {
    if (this.#over) return;
    try {
      this.#ask();
    } catch (error) {
      this.#threw(error);
    }
  }

  #fail(error: unknown): void {
    this.#giveUp();
    this.#end();
    this.#listener.failed(error, this);
  }

  /** The grant may exist although nobody will use it: it must not block others for a whole ttl. */
  #giveUp(): void {
    const sent = this.#sent;
    sent.isOver = true;
    if (!sent.isExposed) return;
    sent.isExposed = false;
    abandonClaim(this.#caller, sent.claim, sent.mayArrive, this.#request.terms.callTimeoutMs);
  }

  #end(): void {
    this.#over = true;
    this.#waitTimer?.cancel();
    this.#leaveLine();
    this.#pauses?.end();
    this.#caller.ended();
  }

  #leaveLine(): void {
    if (this.#sent.waiter !== null) this.#context.heartbeats!.leave(this.#sent);
  }

  #leftMs(): number {
    const { startedAt, waitMs } = this.#request;
    return waitMs === Infinity ? Infinity : startedAt + waitMs - this.#caller.clock.now();
  }

  /** Silence is not busy: who does not hear from the backend is told that, and not a guess. */
  #outOfPatience(): unknown {
    if (this.#failure !== null) return this.failure;
    const waitedMs = this.#caller.clock.now() - this.#request.startedAt;
    if (!this.#answered) return this.#caller.silence(waitedMs);
    return new AcquireTimeoutError(this.#request.resource, waitedMs, this.#holders);
  }

  #newClaim(): SentClaim {
    const { resource, terms, tokens } = this.#request;
    const { mode, limit, ttlMs, lockDelayMs, label } = terms;
    const grantId = mintGrantId();
    const claim = { resource, grantId, mode, limit, ttlMs, lockDelayMs, tokens, label };
    return new SentClaim(claim);
  }
}
