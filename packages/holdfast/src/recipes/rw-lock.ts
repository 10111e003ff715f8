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
  withoutPatience,
} from "./options.js";

/** Readers hold it together, a writer alone. All stand in one line, so neither kind starves. */
export interface RwLock {
  read(options?: RecipeOptions): Promise<Lease>;
  write(options?: RecipeOptions): Promise<Lease>;
  /** Null where a writer holds it or anybody waits. */
  tryRead(options?: RecipeTryOptions): Promise<Lease | null>;
  /** Null where anybody holds it or waits. */
  tryWrite(options?: RecipeTryOptions): Promise<Lease | null>;
}

/** What a read-write lock is made of. */
interface Acquirer {
  acquire(resource: string, options: AcquireOptions): Promise<Lease>;
  tryAcquire(resource: string, options: TryAcquireOptions): Promise<Lease | null>;
}

const READ = { mode: "shared" } as const;
const WRITE = { mode: "exclusive" } as const;

export function rwLock(locks: Acquirer, name: string, defaults: RecipeDefaults = {}): RwLock {
  checkResource(name);
  checkDefaults(defaults, DEFAULTS, "rwLock");
  const tryDefaults = withoutPatience(defaults);
  return {
    read: async (options = {}) => locks.acquire(name, merge(options, defaults, READ, "rwLock")),
    write: async (options = {}) => locks.acquire(name, merge(options, defaults, WRITE, "rwLock")),
    tryRead: async (options = {}) => locks.tryAcquire(name, merge(options, tryDefaults, READ, "rwLock")),
    tryWrite: async (options = {}) =>
      locks.tryAcquire(name, merge(options, tryDefaults, WRITE, "rwLock")),
  };
}
