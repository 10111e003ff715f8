import { systemClock, type Timer } from "../../../core/runtime/clock.js";
import { EngineError } from "../../../errors.js";
import type { EncodedOperation } from "../protocol/encode.js";

/** One operation of the script, with the callbacks for its outcome. */
export interface Operation extends EncodedOperation {
  /** When its caller gives up: after that it is no longer sent. */
  readonly until: number;
  /** once: whether it is certain that the client did not send the operation twice by itself. */
  resolve(answer: unknown, once: boolean): void;
  reject(error: unknown): void;
}

/**
 * Turns an outcome into what the caller gets: `read` the answer, `fail` an error. What they throw
 * is thrown to the caller, and so are errors where there is no `fail`. Unless `once`, a copy of the
 * operation may still be on its way.
 */
export interface AnswerReader<T> {
  read(answer: unknown, once: boolean): T;
  fail?(error: unknown): T;
}

/** An operation of many that share a collector. An error counts as an answer. */
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

/**
 * Collects the answers to many operations. Done when the last one has come, or when collectMs are
 * over.
 */
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
  const message = `this shard did not answer within ${collectMs} ms, although others did`;
  return new EngineError(message, { effect: "unknown", retryable: true });
}
