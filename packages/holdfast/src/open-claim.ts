import type { Backend, Question } from "./backend.js";
import type { Call, Claim } from "./engine.js";
import { EngineError, HoldfastError, UsageError } from "./errors.js";
import { Doubt } from "./grant.js";

/** Who asks about a claim. Questions are numbered: what answers an earlier one may come too late. */
export interface Asker {
  awaits(question: number): boolean;
  /** What a step threw. */
  threw(error: unknown): void;
}

/** What is asked, and what follows from the answer. */
export interface Step<A extends Asker, T> {
  ask(asker: A, call: Call): Promise<T>;
  answered(asker: A, answer: T, startedAt: number): void;
  failed(asker: A, error: unknown): void;
}

/** A claim, and what the backend may know of it. Every request about it leaves through here. */
export class OpenClaim extends Doubt {
  readonly claim: Claim;
  /** Whether the backend may know of it. */
  exposed = false;
  readonly #backend: Backend;
  readonly #timeoutMs: number;

  constructor(backend: Backend, claim: Claim, timeoutMs: number) {
    super();
    this.#backend = backend;
    this.claim = claim;
    this.#timeoutMs = timeoutMs;
  }

  send<A extends Asker, T>(asker: A, question: number, step: Step<A, T>): void {
    this.#backend.ask(this.#timeoutMs, new Request(this, asker, question, step));
  }

  /** The grant may exist although nobody will use it: it must not block others for a whole ttl. */
  giveUp(): void {
    this.end();
    if (!this.exposed) return;
    this.exposed = false;
    this.#backend.abandon(this.claim, this.exists, this.#timeoutMs);
  }

  /** Once more, for what came after that. */
  giveBack(): void {
    this.#backend.abandon(this.claim, true, this.#timeoutMs);
  }
}

/** Whether it says that the backend has a grant or a waiter. */
function isPresent(answer: unknown): boolean {
  const { kind } = answer as { readonly kind?: unknown };
  return kind === "granted" || kind === "queued";
}

/**
 * A call may have to wait for the event loop to turn; one that nobody waits for any more is not sent
 * at all, and nobody is told how one ended that nobody waits for.
 */
class Request<A extends Asker, T> implements Question<T> {
  readonly #open: OpenClaim;
  readonly #asker: A;
  readonly #question: number;
  readonly #step: Step<A, T>;
  readonly #exposedBefore: boolean;
  #sentAt: number | null = null;

  constructor(open: OpenClaim, asker: A, question: number, step: Step<A, T>) {
    this.#open = open;
    this.#asker = asker;
    this.#question = question;
    this.#step = step;
    this.#exposedBefore = open.exposed;
  }

  send(call: Call): Promise<T> | null {
    if (!this.#asker.awaits(this.#question)) return null;
    this.#open.exposed = true;
    this.#open.unanswered++;
    this.#sentAt = call.startedAt;
    return this.#step.ask(this.#asker, call);
  }

  answered(answer: T): void {
    this.#open.unanswered--;
    if (!this.#asker.awaits(this.#question)) return;
    try {
      this.#step.answered(this.#asker, answer, this.#sentAt!);
    } catch (error) {
      this.#asker.threw(error);
    }
  }

  /**
   * A tombstone awaits a request for two minutes. One that lay in a queue of the client's for longer is
   * carried out, and its answer tells of a grant that nobody has: it would block everyone for a ttl.
   */
  late(answer: T): void {
    if (this.#open.isOver && isPresent(answer)) this.#open.giveBack();
  }

  failed(error: unknown): void {
    const sent = this.#sentAt !== null;
    const effect = sent && !withoutEffect(error);
    if (sent) this.#open.unanswered--;
    if (effect) this.#open.lost = true;
    if (!this.#asker.awaits(this.#question)) return;
    if (!effect) this.#open.exposed = this.#exposedBefore;
    try {
      this.#step.failed(this.#asker, error);
    } catch (thrown) {
      this.#asker.threw(thrown);
    }
  }
}

/** Errors that vouch for it that nothing changed at the backend. */
function withoutEffect(error: unknown): boolean {
  if (error instanceof EngineError) return error.effect === "none";
  return (
    error instanceof UsageError || (error instanceof HoldfastError && error.code !== "CONTRACT")
  );
}
