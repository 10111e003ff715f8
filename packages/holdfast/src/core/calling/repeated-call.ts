import type { Call, Failed } from "../../engine.js";
import { EngineError } from "../../errors.js";
import type { Timer } from "../runtime/clock.js";
import type { Caller, CallHandler } from "./call.js";

// The first repeat is sent at once, the second after a short rest.
const REPEAT_AFTER_MS = [0, 100];

type Sends<T> = (call: Call) => Promise<readonly (T | Failed)[]>;
/** mayHaveHappened: an attempt before the answered one may have been carried out. */
type OnDone<T> = (answer: T, mayHaveHappened: boolean) => void;

/**
 * The renewal or the release of one grant. Both are safe to repeat, so a failed attempt is repeated
 * a few times. Calls either onDone or onGaveUp, once.
 */
export class RepeatedCall<T extends { kind: string }>
  implements CallHandler<readonly (T | Failed)[]>
{
  readonly send: Sends<T>;
  readonly #caller: Caller;
  readonly #timeoutMs: number;
  readonly #onDone: OnDone<T>;
  readonly #onGaveUp: (error: unknown) => void;
  #attempt = 0;
  #mayHaveHappened = false;
  /** Set during the rest before the next attempt. */
  #rest: Timer | null = null;
  #skipsRests = false;

  constructor(
    caller: Caller,
    timeoutMs: number,
    send: Sends<T>,
    onDone: OnDone<T>,
    onGaveUp: (error: unknown) => void,
  ) {
    this.#caller = caller;
    this.#timeoutMs = timeoutMs;
    this.send = send;
    this.#onDone = onDone;
    this.#onGaveUp = onGaveUp;
  }

  start(): void {
    this.#caller.send(this.#timeoutMs, this, true);
  }

  /**
   * The backend reported a change and may answer differently now, so the next attempt must not
   * wait.
   */
  skipRests(): void {
    this.#skipsRests = true;
    if (this.#rest === null) return;
    this.#rest.cancel();
    this.#repeat();
  }

  answered(answers: readonly (T | Failed)[]): void {
    const answer = answers[0];
    if (answers.length !== 1) this.failed(this.#caller.miscount(1, answers.length));
    else if (answer!.kind === "failed") this.failed(this.#caller.failure(answer as Failed));
    else this.#onDone(answer as T, this.#mayHaveHappened);
  }

  failed(error: unknown): void {
    this.#mayHaveHappened ||= !(error instanceof EngineError && error.effect === "none");
    const delayMs = REPEAT_AFTER_MS[this.#attempt++];
    const repeat = error instanceof EngineError && (error.retryable || error.effect === "unknown");
    if (!repeat || delayMs === undefined) this.#onGaveUp(error);
    else if (delayMs === 0 || this.#skipsRests) this.start();
    else this.#rest = this.#caller.clock.timer(delayMs, () => this.#repeat(), true);
  }

  #repeat(): void {
    this.#rest = null;
    this.start();
  }
}

/** Like RepeatedCall, as a promise. */
export function callRepeatedly<T extends { kind: string }>(
  caller: Caller,
  timeoutMs: number,
  send: Sends<T>,
): { readonly answer: Promise<T>; skipRests(): void } {
  let call!: RepeatedCall<T>;
  const answer = new Promise<T>((resolve, reject) => {
    call = new RepeatedCall(caller, timeoutMs, send, resolve, reject);
  });
  call.start();
  return { answer, skipRests: () => call.skipRests() };
}
