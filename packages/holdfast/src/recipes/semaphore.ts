import { checkResource } from "../core/acquiring/resource.js";
import type { Lease } from "../core/holding/lease.js";
import { type RunFunction, runArguments } from "../core/holding/run.js";
import type { Known } from "../core/input/known-options.js";
import { whole } from "../core/input/option-values.js";
import { UsageError } from "../errors.js";
import type { AcquireOptions, TryAcquireOptions } from "../options.js";
import {
  checkDefaults,
  DEFAULTS,
  merge,
  type RecipeDefaults,
  type RecipeOptions,
  type RecipeTryOptions,
  withoutWaiting,
} from "./options.js";

export interface SemaphoreOptions extends RecipeDefaults {
  /** The most holders at once. Every user of the resource must give the same number. */
  readonly permits: number;
}

/** At most `permits` holders at once; the others wait in the queue. */
export interface Semaphore {
  acquire(options?: RecipeOptions): Promise<Lease>;
  /** Null when no permit is left, or anybody waits. */
  tryAcquire(options?: RecipeTryOptions): Promise<Lease | null>;
  /** Runs fn under a permit and returns fn's value; otherwise like `locks.run`. */
  run<T>(fn: RunFunction<T>): Promise<T>;
  run<T>(options: RecipeOptions, fn: RunFunction<T>): Promise<T>;
}

/** The part of Locks that a semaphore uses. */
interface Acquirer {
  acquire(resource: string, options: AcquireOptions): Promise<Lease>;
  tryAcquire(resource: string, options: TryAcquireOptions): Promise<Lease | null>;
  run<T>(resource: string, options: AcquireOptions, fn: RunFunction<T>): Promise<T>;
}

const OPTIONS: Known<SemaphoreOptions> = { permits: true, ...DEFAULTS };

export function semaphore(locks: Acquirer, name: string, options: SemaphoreOptions): Semaphore {
  checkResource(name);
  const { permits, ...defaults } = options ?? {};
  // acquire, and other libraries, call it limit.
  if (permits === undefined && "limit" in defaults) {
    throw new UsageError(
      'semaphore has no option "limit"; how many hold it at once is "permits" here',
    );
  }
  checkDefaults(options ?? {}, OPTIONS, "semaphore");
  const decided = { mode: "shared", limit: whole("permits", permits, 1) } as const;
  const tryDefaults = withoutWaiting(defaults);
  const terms = (given: RecipeOptions = {}) => merge(given, defaults, decided, "semaphore");
  return {
    acquire: async (given) => locks.acquire(name, terms(given)),
    tryAcquire: async (given = {}) =>
      locks.tryAcquire(name, merge(given, tryDefaults, decided, "semaphore")),
    run: async <T>(...args: readonly unknown[]) => {
      const [given, fn] = runArguments<RecipeOptions, T>(args, null);
      return locks.run(name, terms(given), fn);
    },
  };
}
