import type { Backend, Question } from "./backend.js";
import type { Call, Failed, Gone, Released, Renewed } from "./engine.js";
import { EngineError } from "./errors.js";

// A reply that failed to arrive is asked for again at once, and once more after a breath.
const REPEAT_AFTER_MS = [0, 100];

/** Renew or release of one grant: what is safe to repeat is repeated, within bounds. */
export abstract class Insistence<T extends { kind: string }>
  implements Question<readonly (T | Failed)[]>
{
  protected readonly backend: Backend;
  readonly #timeoutMs: number;
  #attempt = 0;

  constructor(backend: Backend, timeoutMs: number) {
    this.backend = backend;
    this.#timeoutMs = timeoutMs;
  }

  abstract send(call: Call): Promise<readonly (T | Failed)[]>;
  /** An attempt failed; others may follow. */
  protected abstract tried(error: unknown): void;
  /** One of these two is called, once. */
  protected abstract done(answer: T): void;
  protected abstract gaveUp(error: unknown): void;

  ask(): void {
    this.backend.ask(this.#timeoutMs, this);
  }

  answered(answers: readonly (T | Failed)[]): void {
    const answer = answers[0];
    if (answers.length !== 1) this.failed(this.backend.miscount(1, answers.length));
    else if (answer!.kind === "failed") this.failed(this.backend.failure(answer as Failed));
    else this.done(answer as T);
  }

  failed(error: unknown): void {
    this.tried(error);
    const delayMs = REPEAT_AFTER_MS[this.#attempt++];
    const repeat = error instanceof EngineError && (error.retryable || error.effect === "unknown");
    if (!repeat || delayMs === undefined) this.gaveUp(error);
    else if (delayMs === 0) this.ask();
    else this.backend.clock.timer(delayMs, () => this.ask(), true);
  }
}

interface Insister<T> {
  send(call: Call): Promise<readonly (T | Failed)[]>;
  done(answer: T): void;
  gaveUp(error: unknown): void;
}

/** One for those who await. */
export class Insisting<T extends { kind: string }> extends Insistence<T> {
  readonly #insister: Insister<T>;

  constructor(backend: Backend, timeoutMs: number, insister: Insister<T>) {
    super(backend, timeoutMs);
    this.#insister = insister;
  }

  send(call: Call): Promise<readonly (T | Failed)[]> {
    return this.#insister.send(call);
  }

  protected tried(): void {}

  protected done(answer: T): void {
    this.#insister.done(answer);
  }

  protected gaveUp(error: unknown): void {
    this.#insister.gaveUp(error);
  }
}

type End = Released | Renewed | Gone;
export type AsksEnd = (call: Call) => Promise<readonly (End | Failed)[]>;

/** The end of one grant, by a release or by a last renewal. close() waits for it. */
export class Ending extends Insistence<End> {
  readonly #send: AsksEnd;
  readonly #goodUntil: number;
  readonly #resolve: (outcome: "released" | "gone") => void;
  readonly #reject: (error: unknown) => void;
  #unanswered = false;

  constructor(
    backend: Backend,
    send: AsksEnd,
    timeoutMs: number,
    goodUntil: number,
    resolve: (outcome: "released" | "gone") => void,
    reject: (error: unknown) => void,
  ) {
    super(backend, timeoutMs);
    this.#send = send;
    this.#goodUntil = goodUntil;
    this.#resolve = resolve;
    this.#reject = reject;
    backend.began();
  }

  send(call: Call): Promise<readonly (End | Failed)[]> {
    return this.#send(call);
  }

  protected tried(error: unknown): void {
    this.#unanswered ||= !(error instanceof EngineError && error.effect === "none");
  }

  protected done(answer: End): void {
    this.backend.ended();
    this.#resolve(answer.kind !== "gone" || this.#didEnd(answer) ? "released" : "gone");
  }

  /**
   * What a repeat does not find any more, the attempt before it has ended. Once our time is over a
   * successor may have come by expiry as well, and then it was not ours to give back.
   */
  #didEnd({ why }: Gone): boolean {
    if (!this.#unanswered) return false;
    return why !== "replaced" || this.backend.clock.now() < this.#goodUntil;
  }

  protected gaveUp(error: unknown): void {
    this.backend.ended();
    this.#reject(error);
  }
}
