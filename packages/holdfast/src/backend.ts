import type { Clock } from "./clock.js";
import type { Call, Engine, Failed, Gone, GrantRef, Released } from "./engine.js";
import { ContractError, EngineError, HoldfastError } from "./errors.js";
import { emit } from "./events.js";
import type { Grant } from "./grant.js";

// A reply that failed to arrive is asked for again at once, and once more after a breath.
const REPEAT_AFTER_MS = [0, 100];
// Long enough that no client library still resends a command when the tombstone goes.
const TOMBSTONE_MS = 120_000;
const REMEMBERED_TOKENS = 1024;
// An engine inside the process answers without ever letting the event loop turn. After so many calls
// or milliseconds the next call waits for it: renewals, timers and the rest of the program must have
// their turn too.
const CALLS_PER_TURN = 64;
const TURN_MS = 10;

/** An engine as the core calls it: with a deadline on every call and failures told truthfully. */
export class Backend {
  readonly engine: Engine;
  readonly clock: Clock;
  readonly #background = new Set<Promise<unknown>>();
  readonly #lastTokens = new Map<string, bigint>();
  #callsThisTurn = 0;
  #turnStartedAt = 0;
  #nextTurn: Promise<void> | null = null;

  constructor(engine: Engine, clock: Clock) {
    this.engine = engine;
    this.clock = clock;
  }

  /** Asks the engine once. An engine that never answers costs timeoutMs, and the effect is unknown. */
  call<T>(timeoutMs: number, ask: (call: Call) => Promise<T>, keepAlive = true): Promise<T> {
    this.#nextTurn ??= this.#turn();
    const tooMany = ++this.#callsThisTurn > CALLS_PER_TURN;
    if (!tooMany && this.clock.now() - this.#turnStartedAt < TURN_MS) {
      return this.#ask(timeoutMs, ask, keepAlive);
    }
    return this.#nextTurn.then(() => this.#ask(timeoutMs, ask, keepAlive));
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

  #ask<T>(timeoutMs: number, ask: (call: Call) => Promise<T>, keepAlive: boolean): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const onTimeout = () => reject(this.silence(timeoutMs));
      const timer = this.clock.timer(timeoutMs, onTimeout, keepAlive);
      const fail = (error: unknown) => {
        timer.cancel();
        reject(this.#truthful(error));
      };
      try {
        ask({ startedAt: this.clock.now(), timeoutMs }).then((answer) => {
          timer.cancel();
          resolve(answer);
        }, fail);
      } catch (error) {
        fail(error);
      }
    });
  }

  /** As call, for renew and release of one grant: what is safe to repeat is repeated, within bounds. */
  async insist<T extends { kind: string }>(
    timeoutMs: number,
    ask: (call: Call) => Promise<readonly (T | Failed)[]>,
    onFailure?: (error: unknown) => void,
  ): Promise<T> {
    for (let attempt = 0; ; attempt++) {
      try {
        const [answer] = expectAnswers(this.engine.name, 1, await this.call(timeoutMs, ask));
        return this.#unwrap(answer as T | Failed);
      } catch (error) {
        onFailure?.(error);
        const delayMs = REPEAT_AFTER_MS[attempt];
        const repeat =
          error instanceof EngineError && (error.retryable || error.effect === "unknown");
        if (!repeat || delayMs === undefined) throw error;
        if (delayMs > 0) await new Promise<void>((go) => this.clock.timer(delayMs, go, true));
      }
    }
  }

  /** Gives back what a lease stood on. close() waits for it; its error is the caller's. */
  endGrant(grant: Grant, timeoutMs: number): Promise<"released" | "gone"> {
    const work = this.#end(grant, grant.doubt.exists, timeoutMs, grant.validUntil);
    this.track(work);
    return work;
  }

  /**
   * Gives up a claim nobody waits for any more. The grant may exist although we never saw the reply:
   * releasing nothing is harmless, leaving it would block everyone for a whole ttl.
   */
  abandon(ref: GrantRef, inDoubt: boolean, timeoutMs: number): void {
    this.inBackground("clean-up", ref.resource, this.#end(ref, inDoubt, timeoutMs));
  }

  async #end(
    { resource, grantId }: GrantRef,
    inDoubt: boolean,
    timeoutMs: number,
    goodUntil = -Infinity,
  ): Promise<"released" | "gone"> {
    const ref = { resource, grantId, tombstoneMs: inDoubt ? TOMBSTONE_MS : 0 };
    let unanswered = false;
    const onFailure = (error: unknown) => {
      unanswered ||= !(error instanceof EngineError && error.effect === "none");
    };
    const ask = (call: Call) => this.engine.release([ref], call);
    const answer = await this.insist<Released | Gone>(timeoutMs, ask, onFailure);
    if (answer.kind === "released" || !unanswered) return answer.kind;
    // What a repeat does not find any more, the attempt before it has released. Once our time is over
    // a successor may have come by expiry as well, and then it was not ours to give back.
    return answer.why !== "replaced" || this.clock.now() < goodUntil ? "released" : "gone";
  }

  /** Work whose failure has no caller to be thrown at, so it becomes an event. */
  inBackground(during: string, resource: string, work: Promise<unknown>): void {
    work.catch((error: unknown) => emit("failed", () => ({ during, error, resource })));
    this.track(work);
  }

  /** Work that close() waits for, however it ends. */
  track(work: Promise<unknown>): void {
    const tracked: Promise<unknown> = work
      .catch(() => {})
      .finally(() => this.#background.delete(tracked));
    this.#background.add(tracked);
  }

  /** Resolves when all background work has ended; each piece is bounded by its own timeouts. */
  async settled(): Promise<void> {
    while (this.#background.size > 0) await Promise.all(this.#background);
  }

  /**
   * The last line of defence: a token that went back must not reach a user as if it were good. Only
   * exclusive grants are compared; the answers to shared ones may overtake each other on their way.
   */
  checkToken(grant: Grant): void {
    const { resource, firstToken } = grant;
    const last = this.#lastTokens.get(resource) ?? -1n;
    if (grant.mode === "exclusive" && firstToken <= last) {
      throw new ContractError(
        `${this.engine.name} granted token ${firstToken} for "${resource}" after ${last}; ` +
          "tokens must rise with every grant",
        { resource },
      );
    }
    const highest = firstToken + BigInt(grant.tokens - 1);
    this.#lastTokens.delete(resource);
    this.#lastTokens.set(resource, highest > last ? highest : last);
    if (this.#lastTokens.size > REMEMBERED_TOKENS) {
      for (const oldest of this.#lastTokens.keys()) {
        this.#lastTokens.delete(oldest);
        break;
      }
    }
  }

  #unwrap<T extends { kind: string }>(answer: T | Failed): T {
    if (answer.kind !== "failed") return answer as T;
    throw this.failure(answer as Failed);
  }

  /** What a caller is told to whom the engine said nothing at all. */
  silence(afterMs: number): EngineError {
    const message = `${this.engine.name} did not answer within ${Math.round(afterMs)} ms`;
    return new EngineError(message, { effect: "unknown", retryable: true });
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
  engine: string,
  asked: number,
  answers: readonly T[],
): readonly T[] {
  if (answers.length === asked) return answers;
  throw new ContractError(`${engine} was asked for ${asked} answers and gave ${answers.length}`);
}
