import { systemClock, type Timer } from "../../../core/runtime/clock.js";
import { EngineError } from "../../../errors.js";
import type { EncodedOperation } from "../protocol/encode.js";

/** One operation of the script, and who is told what came of it. */
export interface Operation extends EncodedOperation {
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
export interface AnswerReader<T> {
  read(answer: unknown, once: boolean): T;
  fail?(error: unknown): T;
}

/** One of many. An error is an answer here. */
export class CollectedOperation implements Operation {
  readonly key: string;
  readonly words: readonly string[];
  readonly until: number;
  readonly #collector: AnswerCollector;
  readonly #index: number;

  constructor(
    { key, words }: EncodedOperation,
    until: number,
    collector: AnswerCollector,
    index: number,
  ) {
    this.key = key;
    this.words = words;
    this.until = until;
    this.#collector = collector;
    this.#index = index;
  }

  resolve(answer: unknown): void {
    this.#collector.take(this.#index, answer);
  }

  reject(error: unknown): void {
    this.#collector.take(this.#index, error);
  }
}

const MISSING = Symbol("missing");

/** The answers to many, complete when the last one has come or patience is spent. */
export class AnswerCollector {
  readonly #answers: unknown[];
  readonly #timeout: Timer | null;
  readonly #done: (answers: unknown[]) => void;
  #missing: number;

  constructor(count: number, collectMs: number, done: (answers: unknown[]) => void) {
    this.#answers = new Array<unknown>(count).fill(MISSING);
    this.#missing = count;
    this.#done = done;
    const giveUp = () => {
      for (let i = 0; i < count; i++) this.take(i, shardTimeout(collectMs));
    };
    const endless = collectMs === Infinity;
    this.#timeout = endless ? null : systemClock.timer(collectMs, giveUp, false);
  }

  take(i: number, answer: unknown): void {
    if (this.#answers[i] !== MISSING) return;
    this.#answers[i] = answer;
    if (--this.#missing > 0) return;
    this.#timeout?.cancel();
    this.#done(this.#answers);
  }
}

function shardTimeout(collectMs: number): EngineError {
  const message = `this shard did not answer within ${collectMs} ms, and others did`;
  return new EngineError(message, { effect: "unknown", retryable: true });
}
