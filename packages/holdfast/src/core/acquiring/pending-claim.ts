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

/** What all claims of one connection share. */
export interface ClaimContext {
  readonly caller: Caller;
  readonly tokenCheck: TokenCheck;
  /** Null when the engine keeps no queue; the claim polls then. */
  readonly heartbeats: WaiterHeartbeats | null;
  readonly drift: number;
}

export interface ClaimRequest extends PauseTerms {
  readonly terms: Terms;
  readonly tokens: number;
  readonly startedAt: number;
  readonly waitMs: number;
}

/** Is told how a claim ends, and whom it waits for. */
export interface ClaimListener {
  /** Either granted or failed is called, once. */
  granted(grant: Grant, now: number): void;
  failed(error: unknown, claim: PendingClaim): void;
  /** Called whenever the backend names the holders that the claim waits for. */
  onHolders(holders: readonly HolderView[]): void;
}

type Step = "try" | "enqueue" | "claim again" | "withdraw";
type Answer = Granted | Busy | Queued | Gone | Withdrawn;

/** When waitMs is over, a claim still waits this long for an answer that is on its way. */
export const FINAL_ANSWER_MS = 50;

/**
 * One claim, from its first call until it is granted, times out, is aborted or fails. However it
 * ends, it leaves nothing behind: no waiter, no grant, no timer, no listener.
 *
 * It calls back instead of awaiting: nearly every claim is granted by its first answer, and a chain
 * of promises would cost more than all the rest of the claim.
 */
export class PendingClaim implements CallListener<Answer, SentClaim>, Waiter {
  readonly #context: ClaimContext;
  readonly #request: ClaimRequest;
  readonly #listener: ClaimListener;
  readonly #caller: Caller;
  #sent: SentClaim;
  /** The call under way. Answers to earlier calls come too late. */
  #call: Call | null = null;
  #step: Step = "try";
  /** Counts the sends. A send that waits for its turn is dropped when another send follows it. */
  #sends = 0;
  #wasExposed = false;
  #pauses: ClaimPauses | null = null;
  /** Whether the backend has answered. False again at the timeout if heartbeats were failing. */
  #answered = false;
  #failure: unknown = null;
  /** The holders that the backend named last. */
  #holders: readonly HolderView[] = [];
  /** The claim whose grant came too late, and was asked for once more. */
  #claimedAgain: SentClaim | null = null;
  #unknownInARow = 0;
  #retryAfterMs = Infinity;
  #waitTimer: Timer | null = null;
  /**
   * For the withdrawal: whether heartbeats failed before it, and whether an enqueue may arrive
   * after it.
   */
  #wasSilent = false;
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
    // close() must not close the engine before this claim has cleaned up.
    this.#caller.began();
    const { waitMs } = this.#request;
    // A claim that does not wait needs no timer: its one call has a timeout of its own.
    if (waitMs > 0 && waitMs < Infinity) {
      this.#waitTimer = this.#caller.clock.timer(this.#leftMs(), () => this.#onTimeout(), true);
    }
    this.#ask();
  }

  /** Whether the backend has answered. */
  get isAnswered(): boolean {
    return this.#answered;
  }

  /** Whether the last heartbeat failed. The list of holders is stale then. */
  get isSilent(): boolean {
    return this.#sent.waiter !== null && this.#sent.failures > 0;
  }

  /**
   * The last request's error, unless a later one was answered. A request that is still unanswered
   * may have an effect, so the error says so.
   */
  get failure(): unknown {
    return this.#sent.mayArrive ? inDoubt(this.#failure) : this.#failure;
  }

  /** The holders as of the last heartbeat; undefined while the claim is in no queue. */
  get holders(): readonly HolderView[] | undefined {
    return this.#sent.waiter === null ? undefined : this.#sent.holders;
  }

  abort(reason: unknown): void {
    if (!this.#over) this.#fail(reason);
  }

  #ask(): void {
    const { heartbeats } = this.#context;
    if (heartbeats !== null && this.#request.waitMs > 0) {
      // Added before the claim is sent, because a push may overtake the answer.
      heartbeats.add(this.#sent, this);
      this.#send("enqueue");
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
    if (this.#step === "enqueue") return engine.queue!.enqueue(sent.claim, call);
    if (this.#step === "withdraw") return engine.queue!.withdraw(sent.claim, call);
    return engine.tryAcquire(sent.claim, call);
  }

  answered(answer: Answer, call: Call, sent: SentClaim): void {
    sent.unanswered--;
    if (!this.#awaits(call)) {
      // The tombstone may have ended before the request arrived.
      if (this.#caller.clock.now() - call.startedAt >= TOMBSTONE_MS) this.late(answer, sent);
      return;
    }
    try {
      this.#take(answer, call);
    } catch (error) {
      this.#onThrown(error);
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
      this.#onThrown(thrown);
    }
  }

  /**
   * A tombstone lasts two minutes. A request that the client held back for longer is carried out,
   * and its answer reports a grant that nobody uses. That grant would block everyone for a ttl, so
   * it is released.
   */
  late(answer: Answer, sent: SentClaim): void {
    if (!sent.isOver || !isPresent(answer)) return;
    abandonClaim(this.#caller, sent.claim, true, this.#request.terms.callTimeoutMs);
  }

  /** A push or a heartbeat told what became of our place in the queue. */
  onOutcome(outcome: Outcome): void {
    this.#leaveQueue();
    this.#call = null;
    this.#sends++;
    this.#noteAnswer();
    try {
      if (outcome === "unknown") this.#onUnknown();
      else this.#accept(outcome);
    } catch (error) {
      this.#onThrown(error);
    }
  }

  #awaits(call: Call): boolean {
    return !this.#over && call === this.#call;
  }

  /**
   * An error thrown by a retry strategy or an engine ends the claim. An error thrown after the end
   * is a defect of ours, and is thrown on.
   */
  #onThrown(error: unknown): void {
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
    if (step === "enqueue" && answer.kind === "queued") {
      this.#unknownInARow = 0;
      this.#context.heartbeats!.queued(this.#sent, answer, call.startedAt);
      this.#reportHolders(answer.holders);
      return;
    }
    this.#leaveQueue();
    if (answer.kind === "granted") this.#accept(answer);
    else if (step === "withdraw") this.#withdrawn();
    else if (step === "enqueue" || answer.kind === "gone") this.#onUnknown();
    else this.#busy(answer as Busy);
  }

  #takeFailure(error: unknown): void {
    this.#leaveQueue();
    if (this.#step === "claim again") this.#startOver();
    else if (this.#step !== "withdraw") this.#retryAfter(error);
    else this.#fail(this.#wasSilent ? error : this.#timeoutError());
  }

  /**
   * waitMs is over, but the grant may have come first, and then we use it. A claim in the queue
   * asks by withdrawing; any other claim already has a call under way or sends one now. The wait
   * for that answer is short.
   */
  #onTimeout(): void {
    const giveUp = () => this.#fail(this.#timeoutError());
    this.#waitTimer = this.#caller.clock.timer(FINAL_ANSWER_MS, giveUp, true);
    if (this.#sent.waiter === null) return;
    this.#holders = this.#sent.holders;
    this.#wasSilent = this.isSilent;
    // Heartbeats have been failing, so our list of holders is stale.
    if (this.#wasSilent) this.#answered = false;
    this.#mayBeOvertaken = this.#sent.mayArrive;
    this.#leaveQueue();
    this.#send("withdraw");
  }

  #withdrawn(): void {
    // The withdrawal released what had arrived. Only an enqueue that is still on its way needs a
    // tombstone.
    this.#sent.isExposed = this.#mayBeOvertaken;
    this.#fail(this.#timeoutError());
  }

  /**
   * A grant may come so late that its lease would be lost on arrival: a pushed grant counts from
   * the last heartbeat, which may be longer ago than a short ttl. The backend may still keep the
   * grant, and gives it a fresh ttl when the same claim is repeated. A new claim would lose its
   * place in the queue.
   */
  #accept(granted: Granted): void {
    const sent = this.#sent;
    // A held grant keeps its SentClaim only where it needs it: there may be a million of them.
    const unanswered = sent.mayArrive ? sent : null;
    const grant = new Grant(sent.claim, granted, this.#context.drift, unanswered);
    const now = this.#caller.clock.now();
    if (grant.group.isGoodFor(this.#request.terms.graceMs, now)) {
      this.#context.tokenCheck.check(grant);
      this.#end();
      this.#listener.granted(grant, now);
      return;
    }
    this.#reportHolders([]);
    if (this.#isOutOfTime()) return;
    if (this.#claimedAgain === sent) {
      this.#startOver();
      return;
    }
    this.#claimedAgain = sent;
    // The claim is not in the heartbeats now, so a late push cannot be taken for the answer.
    this.#send("claim again");
  }

  #startOver(): void {
    this.#giveUp();
    this.#sent = this.#newClaim();
    this.#ask();
  }

  /**
   * The backend no longer knows this waiter, or keeps for it a grant that was revoked before we saw
   * it.
   */
  #onUnknown(): void {
    // Release the old claim: a request that is still on its way would enqueue a waiter that nobody
    // knows, and a revoked grant would keep us out for a whole ttl.
    this.#giveUp();
    this.#sent = this.#newClaim();
    this.#reportHolders([]);
    if (this.#isOutOfTime()) return;
    // One lost place is normal. If it happens again, pause: do not flood the backend.
    if (this.#unknownInARow++ > 0) this.#lookAgainLater();
    else this.#ask();
  }

  #busy({ holders, retryAfterMs = Infinity, remembered = false }: Busy): void {
    this.#retryAfterMs = retryAfterMs;
    // An earlier request may still be on its way.
    this.#sent.isExposed = this.#sent.mayArrive || remembered;
    this.#unknownInARow = 0;
    this.#reportHolders(holders);
    if (!this.#isOutOfTime()) this.#lookAgainLater();
  }

  #noteAnswer(): void {
    this.#answered = true;
    this.#failure = null;
  }

  #reportHolders(holders: readonly HolderView[]): void {
    this.#holders = holders;
    this.#listener.onHolders(holders);
  }

  /** Whether the claim is over. The listener that was just called may have ended it too. */
  #isOutOfTime(): boolean {
    if (!this.#over && this.#leftMs() <= 0) this.#fail(this.#timeoutError());
    return this.#over;
  }

  #lookAgainLater(): void {
    const goesOn = this.#consult((pauses) => pauses.afterBusy(this.#retryAfterMs, this.#leftMs()));
    if (!goesOn && !this.#over) this.#fail(this.#timeoutError());
  }

  /** A retry strategy is the user's code. If it ends this claim, its result no longer counts. */
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

  #retryAfter(error: unknown): void {
    this.#failure = error;
    const leftMs = this.#leftMs();
    const retry = error instanceof EngineError && error.retryable && leftMs > 0;
    // Repeats the same grantId: if the lost request did arrive, the repeat finds its place in the
    // queue.
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
      this.#onThrown(error);
    }
  }

  #fail(error: unknown): void {
    this.#giveUp();
    this.#end();
    this.#listener.failed(error, this);
  }

  /**
   * The grant may exist although nobody will use it. Release it, or it blocks others for a whole
   * ttl.
   */
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
    this.#leaveQueue();
    this.#pauses?.end();
    this.#caller.ended();
  }

  #leaveQueue(): void {
    if (this.#sent.waiter !== null) this.#context.heartbeats!.leave(this.#sent);
  }

  #leftMs(): number {
    const { startedAt, waitMs } = this.#request;
    return waitMs === Infinity ? Infinity : startedAt + waitMs - this.#caller.clock.now();
  }

  /** Silence is not busy. If the backend did not answer, the error says so and does not guess. */
  #timeoutError(): unknown {
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
