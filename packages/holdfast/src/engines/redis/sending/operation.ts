import { systemClock, type Timer } from "../../../core/runtime/clock.js";
import { EngineError } from "../../../errors.js";
import type { Asked } from "../protocol/encode.js";

/** One operation of the script, and who is told what came of it. */
export interface Operation extends Asked {
  /** When its caller has given up: from then on it is not sent any more. */
  readonly until: number;
  /** once: whether the client cannot have sent it twice by itself. */
  resolve(answer: unknown, once: boolean): void;
  reject(error: unknown): void;
}

/**
 * What a caller is told: what read makes of the answer, or fail of an error; or what they throw. Without
 * fail, errors are thrown. Where it was not sent once, a copy of it may still be on its way.
 */
export interface Reader<T> {
  read(answer: unknown, once: boolean): T;
  fail?(error: unknown): T;
}

/** One of many. An error is an answer here. */
export class Part implements Operation {
  readonly key: string;
  readonly words: readonly string[];
  readonly until: number;
  readonly #whole: Collection;
  readonly #place: number;

  constructor({ key, words }: Asked, until: number, whole: Collection, place: number) {
    this.key = key;
    this.words = words;
    this.until = until;
    this.#whole = whole;
    this.#place = place;
  }

  resolve(answer: unknown): void {
    this.#whole.take(this.#place, answer);
  }

  reject(error: unknown): void {
    this.#whole.take(this.#place, error);
  }
}

const MISSING = Symbol("missing");

/** The answers to many, complete when the last one has come or patience is spent. */
export class Collection {
  readonly #answers: unknown[];
  readonly #patience: Timer | null;
  readonly #done: (answers: unknown[]) => void;
  #missing: number;

  constructor(count: number, patienceMs: number, done: (answers: unknown[]) => void) {
    this.#answers = new Array<unknown>(count).fill(MISSING);
    this.#missing = count;
    this.#done = done;
    const giveUp = () => {
      for (let i = 0; i < count; i++) this.take(i, lateness(patienceMs));
    };
    const endless = patienceMs === Infinity;
    this.#patience = endless ? null : systemClock.timer(patienceMs, giveUp, false);
  }

  take(i: number, answer: unknown): void {
    if (this.#answers[i] !== MISSING) return;
    this.#answers[i] = answer;
    if (--this.#missing > 0) return;
    this.#patience?.cancel();
    this.#done(this.#answers);
  }
}

function lateness(patienceMs: number): EngineError {
  const message = `this shard did not answer within ${patienceMs} ms, and others did`;
  return new EngineError(message, { effect: "unknown", retryable: true });
}
