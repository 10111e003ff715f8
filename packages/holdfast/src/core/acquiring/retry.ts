import { randomInt } from "node:crypto";
import { show, UsageError } from "../../errors.js";
import { emit } from "../../events.js";
import { type Known, refuseUnknown } from "../input/known-options.js";

/**
 * When to try again: delays in milliseconds. Give an iterable, or a function that gets the first
 * error and returns an iterator; each later error arrives as the value of `yield`. The end of the
 * iterator is the end of trying.
 */
export type RetryStrategy =
  | Iterable<number>
  | ((firstError: unknown) => Iterator<number, unknown, unknown>);

export interface FixedOptions {
  readonly delayMs: number;
  readonly times?: number;
}

/** The same delay every time. */
export function fixed(options: FixedOptions): Iterable<number> {
  refuseUnknown(options, FIXED, "fixed");
  return exponential({ minMs: options.delayMs, factor: 1, jitter: 0, ...withTimes(options.times) });
}

export interface ExponentialOptions {
  readonly minMs?: number;
  readonly maxMs?: number;
  readonly factor?: number;
  /**
   * The part of each delay that is random, 0 to 1, so that contenders that failed together spread
   * out.
   */
  readonly jitter?: number;
  readonly times?: number;
}

const FIXED: Known<FixedOptions> = { delayMs: true, times: true };
const EXPONENTIAL: Known<ExponentialOptions> = {
  ...{ minMs: true, maxMs: true, factor: true, jitter: true, times: true },
};

export const EXPONENTIAL_DEFAULTS = { minMs: 50, maxMs: 2_000, factor: 2, jitter: 0.5 } as const;

/** Delays that grow by a factor up to maxMs. */
export function exponential(options: ExponentialOptions = {}): Iterable<number> {
  refuseUnknown(options, EXPONENTIAL, "exponential");
  const { minMs, factor, jitter, times = Infinity } = { ...EXPONENTIAL_DEFAULTS, ...options };
  const maxMs = options.maxMs ?? Math.max(EXPONENTIAL_DEFAULTS.maxMs, minMs);
  if (!(minMs >= 0 && maxMs >= minMs && factor >= 1 && jitter >= 0 && jitter <= 1 && times >= 0)) {
    throw new UsageError(
      "retry delays need 0 <= minMs <= maxMs, factor >= 1, 0 <= jitter <= 1 and times >= 0, " +
        `got ${JSON.stringify(options)}`,
    );
  }
  return {
    *[Symbol.iterator]() {
      for (let n = 0; n < times; n++) {
        // Without this, 0 times an infinite power would be NaN.
        const delayMs = minMs === 0 ? 0 : Math.min(maxMs, minMs * factor ** n);
        yield delayMs * (1 - jitter * (randomInt(1_000_001) / 1_000_000));
      }
    },
  };
}

/** Iterates over the retry strategy of one acquire. */
export class RetryWalk {
  readonly #strategy: RetryStrategy | undefined;
  #iterator: Iterator<number, unknown, unknown> | undefined;

  constructor(strategy: RetryStrategy | undefined) {
    this.#strategy = strategy;
  }

  /** The delay before the next try; null when the strategy has ended. */
  next(error: unknown): number | null {
    const strategy = this.#strategy;
    if (strategy === undefined) return null;
    this.#iterator ??= iteratorOf(strategy, error);
    const step = this.#iterator.next(error);
    if (typeof step !== "object" || step === null) throw badDelay(step);
    if (step.done) return null;
    if (typeof step.value === "number" && step.value >= 0 && step.value < Infinity) {
      return step.value;
    }
    throw badDelay(step.value);
  }

  /** Lets a generator run its `finally`. If that throws, the grant is not affected. */
  end(): void {
    try {
      this.#iterator?.return?.();
    } catch (error) {
      emit("failed", () => ({ during: "retry", error }));
    }
  }
}

function iteratorOf(strategy: RetryStrategy, error: unknown): Iterator<number, unknown, unknown> {
  const iterator: unknown =
    typeof strategy === "function" ? strategy(error) : strategy[Symbol.iterator]();
  if (typeof (iterator as Iterator<number> | null)?.next === "function") {
    return iterator as Iterator<number, unknown, unknown>;
  }
  throw new UsageError(
    `a retry strategy must give an iterator of milliseconds, got ${show(iterator)}; ` +
      "write a generator function, or an iterable like [100, 200]",
  );
}

function badDelay(value: unknown): UsageError {
  return new UsageError(
    `a retry strategy must yield milliseconds of 0 or more, got ${show(value)}`,
  );
}

function withTimes(times: number | undefined): { times?: number } {
  return times === undefined ? {} : { times };
}
