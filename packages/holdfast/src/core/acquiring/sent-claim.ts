import type {
  Busy,
  Call,
  Claim,
  Gone,
  Granted,
  HolderView,
  Queued,
  Unknown,
  Withdrawn,
} from "../../engine.js";
import { EngineError, HoldfastError, UsageError } from "../../errors.js";
import type { Caller, CallHandler } from "../calling/call.js";
import { abandonClaim, TOMBSTONE_MS } from "../calling/release.js";
import { mintGrantId } from "../holding/grant-id.js";
import type { ClaimRequest } from "./claim-request.js";

/** What is asked of the backend. "claim again" repeats a claim whose grant came too late. */
export type ClaimStep = "try" | "enqueue" | "claim again" | "withdraw";
/** Where the claim is in the queue, a push or a heartbeat may bring the answer. */
export type StepAnswer = Granted | Busy | Queued | Gone | Withdrawn | Unknown;

/** Is told what came of the last request of a claim, and decides what follows. */
export interface AnswerListener {
  onAnswer(answer: StepAnswer): void;
  onFailure(error: unknown): void;
}

/**
 * A claim under one grantId. It sends the requests for that grantId, knows what the backend may
 * know of it, and releases what is granted after nobody wants it any more. While the claim is in
 * the backend's queue, the heartbeats keep its place here too.
 */
export class SentClaim implements CallHandler<StepAnswer> {
  readonly claim: Claim;
  readonly #caller: Caller;
  readonly #callTimeoutMs: number;
  /** Null once no answer matters: this object may outlive the wait, and must not keep it alive. */
  #listener: AnswerListener | null;
  /** The last request that was sent, and its call. Answers to earlier calls come too late. */
  #step: ClaimStep = "try";
  #call: Call | null = null;
  /** Counts the sends. A send that waits for its turn is dropped when another send follows it. */
  #sends = 0;
  /** Whether the backend may know of the claim, and whether it might before the last request. */
  #isExposed = false;
  #wasExposed = false;
  /** How many requests are unanswered, and whether the answer to one was lost. */
  #unanswered = 0;
  #lost = false;
  /** Whether the claim is given up. A grant that is reported after that must be released. */
  isOver = false;
  // The fields from here on describe the place in the queue. Only the heartbeats write them.
  isQueued = false;
  holders: readonly HolderView[] = [];
  dueAt = Infinity;
  intervalMs = 0;
  /** How many heartbeats in a row failed. */
  failures = 0;

  constructor(caller: Caller, { resource, terms, tokens }: ClaimRequest, listener: AnswerListener) {
    const { mode, limit, ttlMs, lockDelayMs, label } = terms;
    const grantId = mintGrantId();
    this.claim = { resource, grantId, mode, limit, ttlMs, lockDelayMs, tokens, label };
    this.#caller = caller;
    this.#callTimeoutMs = terms.callTimeoutMs;
    this.#listener = listener;
  }

  get step(): ClaimStep {
    return this.#step;
  }

  /**
   * Whether a request may still be on its way: its answer was lost, or has not come yet. The
   * release must leave a tombstone then, or a late request creates a grant that nobody releases.
   */
  get mayArrive(): boolean {
    return this.#lost || this.#unanswered > 0;
  }

  /** When the request was sent whose answer is being reported. */
  get startedAt(): number {
    return this.#call!.startedAt;
  }

  ask(step: ClaimStep): void {
    this.#step = step;
    this.#ignoreAnswers();
    this.#caller.send(this.#callTimeoutMs, this, true);
  }

  /**
   * Ends the claim without a grant. The grant may exist although nobody will use it. Release it, or
   * it blocks others for a whole ttl.
   */
  giveUp(): void {
    this.isOver = true;
    this.detach();
    if (!this.#isExposed) return;
    this.#isExposed = false;
    abandonClaim(this.#caller, this.claim, this.mayArrive, this.#callTimeoutMs);
  }

  /** Reports nothing any more. */
  detach(): void {
    this.#listener = null;
    this.#ignoreAnswers();
  }

  stillWants(): () => boolean {
    const send = this.#sends;
    return () => send === this.#sends;
  }

  send(call: Call): Promise<StepAnswer> {
    this.#call = call;
    this.#wasExposed = this.#isExposed;
    this.#isExposed = true;
    this.#unanswered++;
    const { engine } = this.#caller;
    if (this.#step === "enqueue") return engine.queue!.enqueue(this.claim, call);
    if (this.#step === "withdraw") return engine.queue!.withdraw(this.claim, call);
    return engine.tryAcquire(this.claim, call);
  }

  answered(answer: StepAnswer, call: Call): void {
    this.#unanswered--;
    if (call === this.#call) {
      this.#noteExposure(answer);
      this.#listener!.onAnswer(answer);
    } else if (this.#caller.clock.now() - call.startedAt >= TOMBSTONE_MS) {
      // The tombstone may have ended before the request arrived.
      this.late(answer);
    }
  }

  failed(error: unknown, call: Call): void {
    const noEffect = hadNoEffect(error);
    this.#unanswered--;
    if (!noEffect) this.#lost = true;
    if (call !== this.#call) return;
    if (noEffect) this.#isExposed = this.#wasExposed;
    this.#listener!.onFailure(error);
  }

  /**
   * A tombstone lasts two minutes. A request that the client held back for longer is carried out,
   * and its answer reports a grant that nobody uses. That grant would block everyone for a ttl, so
   * it is released.
   */
  late(answer: StepAnswer): void {
    if (!this.isOver || (answer.kind !== "granted" && answer.kind !== "queued")) return;
    abandonClaim(this.#caller, this.claim, true, this.#callTimeoutMs);
  }

  /** A push or a heartbeat brought the answer. One that is still on its way says nothing new. */
  onOutcome(outcome: Granted | Unknown): void {
    this.#ignoreAnswers();
    this.#listener?.onAnswer(outcome);
  }

  /** After these answers the backend knows of the claim only what is still on its way. */
  #noteExposure(answer: StepAnswer): void {
    if (answer.kind === "granted") return;
    // A withdrawal ends no grant that was revoked before we saw it. The release that follows does.
    if (this.#step === "try" && answer.kind !== "gone") {
      this.#isExposed = this.mayArrive || (answer as Busy).remembered === true;
    }
  }

  #ignoreAnswers(): void {
    this.#call = null;
    this.#sends++;
  }
}

/** Whether an error guarantees that nothing changed at the backend. */
function hadNoEffect(error: unknown): boolean {
  if (error instanceof EngineError) return error.effect === "none";
  return (
    error instanceof UsageError || (error instanceof HoldfastError && error.code !== "CONTRACT")
  );
}
