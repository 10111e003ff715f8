import { checkResource } from "../core/acquiring/resource.js";
import type { Lease } from "../core/holding/lease.js";
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

/**
 * Readers hold the lock together, a writer holds it alone. All wait in one queue, so neither kind
 * starves.
 */
export interface RwLock {
  read(options?: RecipeOptions): Promise<Lease>;
  write(options?: RecipeOptions): Promise<Lease>;
  /** Null when a writer holds it or anybody waits. */
  tryRead(options?: RecipeTryOptions): Promise<Lease | null>;
  /** Null when anybody holds it or waits. */
  tryWrite(options?: RecipeTryOptions): Promise<Lease | null>;
}

/** The part of Locks that a read-write lock uses. */
interface Acquirer {
  acquire(resource: string, options: AcquireOptions): Promise<Lease>;
  tryAcquire(resource: string, options: TryAcquireOptions): Promise<Lease | null>;
}

const READ = { mode: "shared" } as const;
const WRITE = { mode: "exclusive" } as const;

export function rwLock(locks: Acquirer, name: string, defaults: RecipeDefaults = {}): RwLock {
  checkResource(name);
  checkDefaults(defaults, DEFAULTS, "rwLock");
  const tryDefaults = withoutWaiting(defaults);
  return {
    read: async (options = {}) => locks.acquire(name, merge(options, defaults, READ, "rwLock")),
    write: async (options = {}) => locks.acquire(name, merge(options, defaults, WRITE, "rwLock")),
    tryRead: async (options = {}) =>
      locks.tryAcquire(name, merge(options, tryDefaults, READ, "rwLock")),
    tryWrite: async (options = {}) =>
      locks.tryAcquire(name, merge(options, tryDefaults, WRITE, "rwLock")),
  };
}
