import type { Call, Engine, Failed } from "../../engine.js";
import { ContractError, EngineError, HoldfastError } from "../../errors.js";
import { emit } from "../../events.js";
import type { Clock } from "../runtime/clock.js";
import { Turns } from "./turns.js";

/** Makes calls through a Caller. Calls may overlap, so each answer comes with its call. */
export interface CallHandler<T> {
  send(call: Call): Promise<T>;
  /**
   * Asked when a call must wait for its turn. The returned function tells later whether to send it.
   */
  stillWants?(): () => boolean;
  /** Each call ends with exactly one of answered and failed. */
  answered(answer: T, call: Call): void;
  failed(error: unknown, call: Call): void;
  /** The answer arrived after the call had timed out. */
  late?(answer: T): void;
}

/**
 * Calls one engine. Every call has a deadline, every failure says what its effect may be, and
 * close() can wait for all work that has begun.
 */
export class Caller {
  readonly engine: Engine;
  readonly clock: Clock;
  /** Null for remote engines: their answers always pass through the event loop. */
  readonly #turns: Turns | null;
  #order = 0;
  #underWay = 0;
  readonly #onSettled: (() => void)[] = [];

  constructor(engine: Engine, clock: Clock) {
    this.engine = engine;
    this.clock = clock;
    this.#turns = engine.traits.remote === true ? null : new Turns(clock);
  }

  /**
   * Sends one call. If the engine does not answer within timeoutMs, the call fails with effect
   * unknown.
   */
  send<T>(timeoutMs: number, handler: CallHandler<T>, keepAlive: boolean): void {
    const turn = this.#turns === null ? null : this.#turns.next();
    if (turn === null) {
      this.#send(timeoutMs, handler, keepAlive);
      return;
    }
    const stillWants = handler.stillWants?.();
    void turn.then(() => {
      if (stillWants?.() !== false) this.#send(timeoutMs, handler, keepAlive);
    });
  }

  #send<T>(timeoutMs: number, handler: CallHandler<T>, keepAlive: boolean): void {
    const call = { startedAt: this.clock.now(), timeoutMs, order: ++this.#order };
    let over = false;
    const sent = sending(handler, call);
    const onTimeout = () => {
      over = true;
      handler.failed(this.silence(timeoutMs), call);
    };
    const timer = this.clock.timer(timeoutMs, onTimeout, keepAlive);
    sent.then(
      (answer) => {
        if (over) {
          handler.late?.(answer);
          return;
        }
        timer.cancel();
        handler.answered(answer, call);
      },
      (error: unknown) => {
        if (over) return;
        timer.cancel();
        handler.failed(this.#truthful(error), call);
      },
    );
  }

  /** Like send(), as a promise. */
  call<T>(timeoutMs: number, send: (call: Call) => Promise<T>, keepAlive = true): Promise<T> {
    return new Promise((resolve, reject) => {
      this.send(timeoutMs, { send, answered: resolve, failed: reject }, keepAlive);
    });
  }

  /** Counts work that close() waits for. Every began() needs one ended(). */
  began(): void {
    this.#underWay++;
  }

  ended(): void {
    this.#underWay--;
    if (this.#underWay > 0) return;
    for (const tell of this.#onSettled.splice(0)) tell();
  }

  /** Runs work that close() waits for. No caller awaits it, so its failure becomes an event. */
  runInBackground(during: string, resource: string, work: Promise<unknown>): void {
    this.began();
    const end = () => this.ended();
    work.catch((error: unknown) => emit("failed", () => ({ during, error, resource })));
    work.then(end, end);
  }

  /** Resolves when all work has ended. Each piece of it is bounded by its own timeouts. */
  async settled(): Promise<void> {
    while (this.#underWay > 0) await new Promise<void>((tell) => this.#onSettled.push(tell));
  }

  /** The error for a call or a wait that the engine never answered. */
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
    // The engine did not say what the effect was, so nothing may be assumed.
    return new EngineError(`${this.engine.name}: ${message}`, {
      effect: "unknown",
      retryable: false,
      cause: error,
    });
  }
}

/** A batch needs one answer per entry, in order; otherwise the engine is defective. */
export function expectAnswers<T>(
  caller: Caller,
  asked: number,
  answers: readonly T[],
): readonly T[] {
  const missing = answers.length !== asked || answers.includes(undefined as T);
  if (!missing) return answers;
  throw caller.miscount(asked, answers.filter((answer) => answer !== undefined).length);
}

function sending<T>(handler: CallHandler<T>, call: Call): Promise<T> {
  try {
    return handler.send(call);
  } catch (error) {
    return Promise.reject(error);
  }
}
