import type { Clock } from "./clock.js";
import type { Call, Engine, Failed, GrantRef } from "./engine.js";
import { ContractError, EngineError, HoldfastError } from "./errors.js";
import { emit } from "./events.js";
import type { Grant } from "./grant.js";
import { type AsksEnd, Ending, Insisting } from "./insistence.js";

const REMEMBERED_TOKENS = 512;
// Long enough that no client library still resends a command when the tombstone goes.
const TOMBSTONE_MS = 120_000;
// An engine inside the process answers without ever letting the event loop turn. After so many calls
// or milliseconds the next call waits for it: renewals, timers and the rest of the program must have
// their turn too.
const CALLS_PER_TURN = 64;
const TURN_MS = 10;

/** One question to the engine, and what follows from its answer. */
export interface Question<T> {
  /** Null where nobody needs the answer any more; then nothing is called. */
  send(call: Call): Promise<T> | null;
  answered(answer: T): void;
  failed(error: unknown): void;
  /** The answer after all, long after the question has failed for want of it. */
  late?(answer: T): void;
}

/** An engine as the core calls it: with a deadline on every call and failures told truthfully. */
export class Backend {
  readonly engine: Engine;
  readonly clock: Clock;
  readonly #onSettled: (() => void)[] = [];
  #lastTokens = new Map<string, bigint>();
  /** Those of the resources before: the two together are the most recent ones. */
  #earlierTokens = new Map<string, bigint>();
  #underWay = 0;
  #order = 0;
  #callsThisTurn = 0;
  #turnStartedAt = 0;
  #nextTurn: Promise<void> | null = null;

  constructor(engine: Engine, clock: Clock) {
    this.engine = engine;
    this.clock = clock;
  }

  /** Asks once. An engine that never answers costs timeoutMs, and the effect is unknown. */
  ask<T>(timeoutMs: number, question: Question<T>, keepAlive = true): void {
    if (this.#mayGoOn()) this.#ask(timeoutMs, question, keepAlive);
    else void this.#nextTurn!.then(() => this.#ask(timeoutMs, question, keepAlive));
  }

  /** As ask, for those who await. */
  call<T>(timeoutMs: number, send: (call: Call) => Promise<T>, keepAlive = true): Promise<T> {
    return new Promise((resolve, reject) => {
      this.ask(timeoutMs, { send, answered: resolve, failed: reject }, keepAlive);
    });
  }

  #mayGoOn(): boolean {
    if (this.engine.traits.remote === true) return true;
    this.#nextTurn ??= this.#turn();
    const tooMany = ++this.#callsThisTurn > CALLS_PER_TURN;
    return !tooMany && this.clock.now() - this.#turnStartedAt < TURN_MS;
  }

  #turn(): Promise<void> {
    this.#turnStartedAt = this.clock.now();
    return new Promise((turned) =>
      setImmediate(() => {
        this.#callsThisTurn = 0;
        this.#nextTurn = null;
        turned();
      }),
    );
  }

  #ask<T>(timeoutMs: number, question: Question<T>, keepAlive: boolean): void {
    const call = { startedAt: this.clock.now(), timeoutMs, order: ++this.#order };
    const asked = sent(question, call);
    if (asked === null) return;
    let over = false;
    const onTimeout = () => {
      over = true;
      question.failed(this.silence(timeoutMs));
    };
    const timer = this.clock.timer(timeoutMs, onTimeout, keepAlive);
    asked.then(
      (answer) => {
        if (over) {
          question.late?.(answer);
          return;
        }
        timer.cancel();
        question.answered(answer);
      },
      (error: unknown) => {
        if (over) return;
        timer.cancel();
        question.failed(this.#truthful(error));
      },
    );
  }

  /** As call, for renew and release of one grant: what is safe to repeat is repeated, within bounds. */
  insist<T extends { kind: string }>(
    timeoutMs: number,
    send: (call: Call) => Promise<readonly (T | Failed)[]>,
  ): Promise<T> {
    return new Promise((done, gaveUp) => {
      new Insisting<T>(this, timeoutMs, { send, done, gaveUp }).ask();
    });
  }

  /** Gives back what a lease stood on. close() waits for it; its error is the caller's. */
  endGrant(grant: Grant, timeoutMs: number): Promise<"released" | "gone"> {
    grant.doubt.end();
    return this.#end(grant, grant.doubt.exists, timeoutMs, grant.validUntil);
  }

  /** Leaves what a lease stood on to end by itself after forMs. */
  async leaveGrant(grant: Grant, forMs: number): Promise<"released" | "gone"> {
    grant.doubt.end();
    const { resource, grantId, index, callTimeoutMs, validUntil } = grant;
    const refs = [{ resource, grantId, ttlMs: forMs, index, leave: true }];
    const send = (call: Call) => this.engine.renew(refs, call);
    const left = await this.#insistOnEnd(send, callTimeoutMs, validUntil);
    // A grant that was revoked unseen cannot be renewed, and would stay until its ttl.
    return left === "released" ? left : this.endGrant(grant, callTimeoutMs);
  }

  /**
   * Gives up a claim nobody waits for any more. The grant may exist although we never saw the reply:
   * releasing nothing is harmless, leaving it would block everyone for a whole ttl.
   */
  abandon(ref: GrantRef, inDoubt: boolean, timeoutMs: number): void {
    this.inBackground("clean-up", ref.resource, this.#end(ref, inDoubt, timeoutMs));
  }

  /** The same with a grant that nobody uses any more. */
  abandonGrant(grant: Grant, timeoutMs: number): void {
    grant.doubt.end();
    this.abandon(grant, grant.doubt.exists, timeoutMs);
  }

  #end(
    { resource, grantId }: GrantRef,
    inDoubt: boolean,
    timeoutMs: number,
    goodUntil = -Infinity,
  ): Promise<"released" | "gone"> {
    const refs = [{ resource, grantId, tombstoneMs: inDoubt ? TOMBSTONE_MS : 0 }];
    return this.#insistOnEnd((call) => this.engine.release(refs, call), timeoutMs, goodUntil);
  }

  #insistOnEnd(send: AsksEnd, timeoutMs: number, goodUntil: number): Promise<"released" | "gone"> {
    return new Promise((resolve, reject) => {
      new Ending(this, send, timeoutMs, goodUntil, resolve, reject).ask();
    });
  }

  /** Work whose failure has no caller to be thrown at, so it becomes an event. */
  inBackground(during: string, resource: string, work: Promise<unknown>): void {
    work.catch((error: unknown) => emit("failed", () => ({ during, error, resource })));
    this.track(work);
  }

  /** Work that close() waits for, however it ends. */
  track(work: Promise<unknown>): void {
    this.began();
    const end = () => this.ended();
    work.then(end, end);
  }

  /** Something that close() waits for has begun; ended() follows, whatever happens. */
  began(): void {
    this.#underWay++;
  }

  ended(): void {
    this.#underWay--;
    if (this.#underWay > 0) return;
    for (const tell of this.#onSettled.splice(0)) tell();
  }

  /** Resolves when all work has ended; each piece is bounded by its own timeouts. */
  async settled(): Promise<void> {
    while (this.#underWay > 0) await new Promise<void>((tell) => this.#onSettled.push(tell));
  }

  /**
   * The last line of defence: a token that went back must not reach a user as if it were good. Only
   * exclusive grants are compared; the answers to shared ones may overtake each other on their way.
   */
  checkToken(grant: Grant): void {
    const { resource, firstToken } = grant;
    const last = this.#lastTokens.get(resource) ?? this.#earlierTokens.get(resource) ?? -1n;
    if (grant.mode === "exclusive" && firstToken <= last) {
      throw new ContractError(
        `${this.engine.name} granted token ${firstToken} for "${resource}" after ${last}; ` +
          "tokens must rise with every grant",
        { resource },
      );
    }
    const highest = grant.tokens === 1 ? firstToken : firstToken + BigInt(grant.tokens - 1);
    this.#lastTokens.set(resource, highest > last ? highest : last);
    if (this.#lastTokens.size < REMEMBERED_TOKENS) return;
    this.#earlierTokens = this.#lastTokens;
    this.#lastTokens = new Map();
  }

  /** What a caller is told to whom the engine said nothing at all. */
  silence(afterMs: number): EngineError {
    const message = `${this.engine.name} did not answer within ${Math.round(afterMs)} ms`;
    const reason = "unreachable";
    return new EngineError(message, { effect: "unknown", retryable: true, reason });
  }

  miscount(asked: number, got: number): ContractError {
    return new ContractError(`${this.engine.name} was asked for ${asked} answers and gave ${got}`);
  }

  failure(failed: Failed): HoldfastError {
    if (failed.error instanceof HoldfastError) return failed.error;
    const { effect, error } = failed;
    return new EngineError(error.message, { effect, retryable: true, cause: error });
  }

  #truthful(error: unknown): unknown {
    if (error instanceof HoldfastError) return error;
    const message = error instanceof Error ? error.message : String(error);
    // An engine should have said what the effect was. It did not, so nothing may be assumed.
    return new EngineError(`${this.engine.name}: ${message}`, {
      effect: "unknown",
      retryable: false,
      cause: error,
    });
  }
}

/** A batch has one answer per entry, in order, or the engine is defective. */
export function expectAnswers<T>(
  backend: Backend,
  asked: number,
  answers: readonly T[],
): readonly T[] {
  const missing = answers.length !== asked || answers.includes(undefined as T);
  if (!missing) return answers;
  throw backend.miscount(asked, answers.filter((answer) => answer !== undefined).length);
}

function sent<T>(question: Question<T>, call: Call): Promise<T> | null {
  try {
    return question.send(call);
  } catch (error) {
    return Promise.reject(error);
  }
}
