import { checkResource } from "../core/acquiring/resource.js";
import type { Lease } from "../core/holding/lease.js";
import { type RunFunction, runArguments } from "../core/holding/run.js";
import type { Known } from "../core/input/known-options.js";
import { UsageError } from "../errors.js";
import { type AcquireOptions, type TryAcquireOptions, whole } from "../options.js";
import {
  checkDefaults,
  DEFAULTS,
  merge,
  type RecipeDefaults,
  type RecipeOptions,
  type RecipeTryOptions,
  withoutPatience,
} from "./options.js";

export interface SemaphoreOptions extends RecipeDefaults {
  /** How many hold it at once. Whoever uses the resource must say the same number. */
  readonly permits: number;
}

/** As many hold it at once as there are permits; the others stand in the queue. */
export interface Semaphore {
  acquire(options?: RecipeOptions): Promise<Lease>;
  /** Null where no permit is left, or anybody waits. */
  tryAcquire(options?: RecipeTryOptions): Promise<Lease | null>;
  /** Runs fn under a permit and gives fn's value; else as `locks.run`. */
  run<T>(fn: RunFunction<T>): Promise<T>;
  run<T>(options: RecipeOptions, fn: RunFunction<T>): Promise<T>;
}

/** What a semaphore is made of. */
interface Acquirer {
  acquire(resource: string, options: AcquireOptions): Promise<Lease>;
  tryAcquire(resource: string, options: TryAcquireOptions): Promise<Lease | null>;
  run<T>(resource: string, options: AcquireOptions, fn: RunFunction<T>): Promise<T>;
}

const OPTIONS: Known<SemaphoreOptions> = { permits: true, ...DEFAULTS };

export function semaphore(locks: Acquirer, name: string, options: SemaphoreOptions): Semaphore {
  checkResource(name);
  const { permits, ...defaults } = options ?? {};
  // What acquire calls it, and other libraries.
  if (permits === undefined && "limit" in defaults) {
    throw new UsageError(
      'semaphore has no option "limit"; how many hold it at once is "permits" here',
    );
  }
  const decided = { mode: "shared", limit: whole("permits", permits, 1) } as const;
  checkDefaults(options, OPTIONS, "semaphore");
  const tryDefaults = withoutPatience(defaults);
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
