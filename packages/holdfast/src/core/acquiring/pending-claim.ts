import type { Busy, Granted, HolderView } from "../../engine.js";
import { EngineError, inDoubt } from "../../errors.js";
import { Grant } from "../holding/grant.js";
import type { Timer } from "../runtime/clock.js";
import { ClaimPauses } from "./claim-pauses.js";
import type { ClaimContext, ClaimListener, ClaimRequest } from "./claim-request.js";
import { type AnswerListener, SentClaim, type StepAnswer } from "./sent-claim.js";
import { lateGrantError, timeoutError } from "./timeout-error.js";

/** When waitMs is over, a claim still waits this long for an answer that is on its way. */
export const FINAL_ANSWER_MS = 50;

/**
 * One claim, from its first call until it is granted, times out, is aborted or fails: it decides
 * what follows from each answer. However it ends, it leaves nothing behind: no waiter, no grant, no
 * timer, no listener.
 *
 * It calls back instead of awaiting: nearly every claim is granted by its first answer, and a chain
 * of promises would cost more than all the rest of the claim.
 */
export class PendingClaim implements AnswerListener {
  readonly #context: ClaimContext;
  readonly #request: ClaimRequest;
  readonly #listener: ClaimListener;
  #sent: SentClaim;
  #pauses: ClaimPauses | null = null;
  /** Whether the backend has answered. False again at the timeout if heartbeats were failing. */
  #answered = false;
  #failure: unknown = null;
  /** The holders that the backend named last. */
  #holders: readonly HolderView[] = [];
  #unknownInARow = 0;
  #retryAfterMs = Infinity;
  #waitTimer: Timer | null = null;
  /** Whether heartbeats failed before the withdrawal. */
  #wasSilent = false;
  #over = false;

  constructor(context: ClaimContext, request: ClaimRequest, listener: ClaimListener) {
    this.#context = context;
    this.#request = request;
    this.#listener = listener;
    this.#sent = new SentClaim(context.caller, request, this);
  }

  start(): void {
    const { caller } = this.#context;
    // close() must not close the engine before this claim has cleaned up.
    caller.began();
    const { waitMs } = this.#request;
    // A claim that does not wait needs no timer: its one call has a timeout of its own.
    if (waitMs > 0 && waitMs < Infinity) {
      this.#waitTimer = caller.clock.timer(this.#leftMs(), () => this.#onTimeout(), true);
    }
    this.#ask();
  }

  /** Whether the backend has answered. */
  get isAnswered(): boolean {
    return this.#answered;
  }

  /** Whether the last heartbeat failed. The list of holders is stale then. */
  get isSilent(): boolean {
    return this.#sent.isQueued && this.#sent.failures > 0;
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
    return this.#sent.isQueued ? this.#sent.holders : undefined;
  }

  abort(reason: unknown): void {
    if (!this.#over) this.#fail(reason);
  }

  #ask(): void {
    const { heartbeats } = this.#context;
    if (heartbeats !== null && this.#request.waitMs > 0) {
      // Added before the claim is sent, because a push may overtake the answer.
      heartbeats.add(this.#sent);
      this.#sent.ask("enqueue");
      return;
    }
    if (this.#request.waitMs > 0) this.#pausing().looking();
    this.#sent.ask("try");
  }

  onAnswer(answer: StepAnswer): void {
    try {
      this.#take(answer);
    } catch (error) {
      this.#onThrown(error);
    }
  }

  onFailure(error: unknown): void {
    try {
      this.#takeFailure(error);
    } catch (thrown) {
      this.#onThrown(thrown);
    }
  }

  /**
   * An error thrown by a retry strategy or an engine ends the claim. An error thrown after the end
   * is a defect of ours, and is thrown on.
   */
  #onThrown(error: unknown): void {
    if (this.#over) throw error;
    this.#fail(error);
  }

  #take(answer: StepAnswer): void {
    const { step } = this.#sent;
    if (step === "claim again") {
      if (answer.kind === "granted") this.#accept(answer);
      else this.#startOver();
      return;
    }
    this.#answered = true;
    this.#failure = null;
    if (step === "enqueue" && answer.kind === "queued") {
      this.#unknownInARow = 0;
      this.#context.heartbeats!.queued(this.#sent, answer, this.#sent.startedAt);
      this.#reportHolders(answer.holders);
      return;
    }
    this.#leaveQueue();
    if (answer.kind === "granted") this.#accept(answer);
    else if (step === "withdraw") this.#fail(this.#timeoutError());
    else if (step === "enqueue" || answer.kind === "gone") this.#onUnknown();
    else this.#busy(answer as Busy);
  }

  #takeFailure(error: unknown): void {
    const { step } = this.#sent;
    this.#leaveQueue();
    if (step === "claim again") this.#startOver();
    else if (step !== "withdraw") this.#retryAfter(error);
    else this.#fail(this.#wasSilent ? error : this.#timeoutError());
  }

  /**
   * waitMs is over, but the grant may have come first, and then we use it. A claim in the queue
   * asks by withdrawing; any other claim already has a call under way or sends one now. The wait
   * for that answer is short.
   */
  #onTimeout(): void {
    const endWait = () => this.#fail(this.#timeoutError());
    this.#waitTimer = this.#context.caller.clock.timer(FINAL_ANSWER_MS, endWait, true);
    if (!this.#sent.isQueued) return;
    this.#holders = this.#sent.holders;
    this.#wasSilent = this.isSilent;
    // Heartbeats have been failing, so our list of holders is stale.
    if (this.#wasSilent) this.#answered = false;
    this.#leaveQueue();
    this.#sent.ask("withdraw");
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
    const now = this.#context.caller.clock.now();
    if (grant.group.isGoodFor(this.#request.terms.graceMs, now)) {
      this.#context.tokenCheck.check(grant);
      this.#end();
      this.#listener.granted(grant, now);
      return;
    }
    this.#reportHolders([]);
    if (this.#isOutOfTime(() => this.#lateGrantError())) return;
    // Twice too late is enough. The claim is not in the heartbeats now, so a late push cannot be
    // taken for the answer.
    if (sent.step === "claim again") this.#startOver();
    else sent.ask("claim again");
  }

  #startOver(): void {
    this.#renewClaim();
    this.#ask();
  }

  /**
   * The backend no longer knows this waiter, or keeps for it a grant that was revoked before we saw
   * it. The old claim is released: a request that is still on its way would enqueue a waiter that
   * nobody knows, and a revoked grant would keep us out for a whole ttl.
   */
  #onUnknown(): void {
    this.#renewClaim();
    this.#reportHolders([]);
    if (this.#isOutOfTime()) return;
    // One lost place is normal. If it happens again, pause: do not flood the backend.
    if (this.#unknownInARow++ > 0) this.#lookAgainLater();
    else this.#ask();
  }

  /** Goes on under a new grantId. */
  #renewClaim(): void {
    this.#sent.giveUp();
    this.#sent = new SentClaim(this.#context.caller, this.#request, this);
  }

  #busy({ holders, retryAfterMs = Infinity }: Busy): void {
    this.#retryAfterMs = retryAfterMs;
    this.#unknownInARow = 0;
    this.#reportHolders(holders);
    if (!this.#isOutOfTime()) this.#lookAgainLater();
  }

  #reportHolders(holders: readonly HolderView[]): void {
    this.#holders = holders;
    this.#listener.onHolders(holders);
  }

  /** Whether the claim is over. The listener that was just called may have ended it too. */
  #isOutOfTime(error = () => this.#timeoutError()): boolean {
    if (!this.#over && this.#leftMs() <= 0) this.#fail(error());
    return this.#over;
  }

  #lookAgainLater(): void {
    const goesOn = this.#pausing().afterBusy(this.#retryAfterMs, this.#leftMs());
    if (!goesOn && !this.#over) this.#fail(this.#timeoutError());
  }

  #retryAfter(error: unknown): void {
    this.#failure = error;
    const leftMs = this.#leftMs();
    const retry = error instanceof EngineError && error.retryable && leftMs > 0;
    // Repeats the same grantId: if the lost request did arrive, the repeat finds its place in the
    // queue.
    const goesOn = retry && this.#pausing().afterFailure(error, leftMs);
    if (!goesOn && !this.#over) this.#fail(this.failure);
  }

  #pausing(): ClaimPauses {
    this.#pauses ??= new ClaimPauses(this.#context.caller, this.#request, () => this.#askAgain());
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
    this.#sent.giveUp();
    this.#end();
    this.#listener.failed(error, this);
  }

  #end(): void {
    this.#over = true;
    this.#waitTimer?.cancel();
    this.#leaveQueue();
    this.#sent.detach();
    this.#pauses?.end();
    this.#context.caller.ended();
  }

  #leaveQueue(): void {
    if (this.#sent.isQueued) this.#context.heartbeats!.leave(this.#sent);
  }

  #leftMs(): number {
    const { startedAt, waitMs } = this.#request;
    return waitMs === Infinity ? Infinity : startedAt + waitMs - this.#context.caller.clock.now();
  }

  #lateGrantError(): unknown {
    return lateGrantError(this.#context.caller, this.#request, this.#sent.claim.ttlMs);
  }

  #timeoutError(): unknown {
    const { caller } = this.#context;
    return timeoutError(caller, this.#request, this.failure, this.#answered, this.#holders);
  }
}
