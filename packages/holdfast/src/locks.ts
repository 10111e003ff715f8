import { checkResource } from "./core/acquiring/resource.js";
import { WaiterHeartbeats } from "./core/acquiring/waiter-heartbeats.js";
import { Caller } from "./core/calling/call.js";
import { TokenCheck } from "./core/calling/token-check.js";
import type { WaitContext } from "./core/cohort/wait-context.js";
import { endWaits, waitForLease } from "./core/cohort/wait-for-lease.js";
import { endLeases } from "./core/holding/end-leases.js";
import type { Lease } from "./core/holding/lease.js";
import { DirectController } from "./core/holding/lease-controller.js";
import {
  isEnclosed,
  joinEnclosing,
  type RunFunction,
  runArguments,
  runsOf,
  runUnder,
  tellEnclosing,
} from "./core/holding/run.js";
import { checkEngine } from "./core/input/handed-in.js";
import { type Known, refuseUnknown } from "./core/input/known-options.js";
import { Keeper } from "./core/renewing/keeper.js";
import { GenerationalMap } from "./core/runtime/generational-map.js";
import { writesAsJson } from "./core/runtime/json.js";
import type { Call, Engine, EngineTraits, ListFilter, ListPage, ResourceView } from "./engine.js";
import { AcquireTimeoutError, show, UsageError } from "./errors.js";
import { parseSequencer } from "./fencing/sequencer.js";
import {
  ACQUIRE_DEFAULTS,
  type AcquireOptions,
  COMMON_OPTIONS,
  type ConnectOptions,
  type ConnectTerms,
  resolveAcquire,
  resolveConnect,
  type Terms,
  type TryAcquireOptions,
} from "./options.js";
import { type OnceOptions, type OnceResult, once } from "./recipes/once.js";
import type { RecipeDefaults } from "./recipes/options.js";
import { type RwLock, rwLock } from "./recipes/rw-lock.js";
import { type Semaphore, type SemaphoreOptions, semaphore } from "./recipes/semaphore.js";

const LIST_PAGE = 256;
const TRY_ACQUIRE: Known<TryAcquireOptions> = {
  ...{ ...COMMON_OPTIONS, mode: true, limit: true, signal: true },
};
const REVOKE: Known<RevokeOptions> = { token: true, force: true };
const LIST: Known<ListOptions> = { match: true, signal: true };

export interface ListOptions {
  /** A glob: `*` matches any run of characters, `?` matches one. */
  readonly match?: string;
  readonly signal?: AbortSignal;
}

export interface RevokeOptions {
  /**
   * The token to revoke, from inspect or list, so that a successor is never revoked by mistake,
   * unless by force. A lease that was handed over inside its process can be revoked by its new
   * token from its next renewal on.
   */
  readonly token: bigint;
  /**
   * Ends the grant at once instead of at the holder's release or expiry. This breaks exclusion: the
   * holder may still be at work when its successor starts. The same is true for a holder that got
   * the lease by a hand-over inside its process and has not renewed it yet: the backend knows only
   * the former token.
   */
  readonly force?: boolean;
}

/** What `connect` returns: every verb of the library on one engine. */
export class Locks implements AsyncDisposable {
  readonly #caller: Caller;
  readonly #connection: ConnectTerms;
  readonly #keeper: Keeper;
  readonly #waits: WaitContext;
  readonly #stopWatching: (() => void) | undefined;
  #closing: Promise<void> | null = null;

  constructor(engine: Engine, options: ConnectOptions = {}) {
    checkEngine(engine, "new Locks", "an engine, like redisEngine({ client })");
    this.#connection = resolveConnect(options);
    const { clock, drift } = this.#connection;
    const caller = new Caller(engine, clock);
    this.#caller = caller;
    // Wrong defaults fail here, at connect, and not at the first acquire.
    const defaults = this.#terms({});
    const heartbeats = engine.queue ? new WaiterHeartbeats(caller, engine.queue) : null;
    this.#keeper = new Keeper(caller);
    this.#waits = {
      caller,
      tokenCheck: new TokenCheck(engine.name),
      heartbeats,
      drift,
      direct: new DirectController(caller, this.#keeper),
      budget: this.#connection,
      defaults,
      alone: new Set(),
      cohorts: new GenerationalMap(),
      shared: new GenerationalMap(),
      isClosed: false,
    };
    this.#stopWatching = engine.watch?.onChange((resource) => this.#keeper.renewSoon(resource));
  }

  get engine(): { readonly name: string; readonly traits: EngineTraits } {
    return this.#caller.engine;
  }

  /** Waits for the lease up to waitMs, else throws AcquireTimeoutError. */
  acquire(resource: string, options?: AcquireOptions): Promise<Lease> {
    try {
      this.#refuseWhenClosed();
      checkResource(resource);
      const terms = options === undefined ? this.#waits.defaults : this.#terms(options);
      terms.signal?.throwIfAborted();
      const joined = terms.reentrant ? joinEnclosing(this, resource, terms.mode) : null;
      if (joined !== null) return Promise.resolve(joined);
      const waiting = waitForLease(this.#waits, resource, terms);
      return isEnclosed() ? this.#tellEnclosing(waiting, resource, terms) : waiting;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Asks once and does not wait. Null when somebody else holds the resource or is in its queue. */
  async tryAcquire(resource: string, options: TryAcquireOptions = {}): Promise<Lease | null> {
    for (const name of ["waitMs", "retry"]) {
      if (Object.hasOwn(options ?? {}, name)) {
        throw new UsageError(`tryAcquire does not wait and takes no ${name}; acquire does`);
      }
    }
    refuseUnknown(options, TRY_ACQUIRE, "tryAcquire");
    try {
      return await this.acquire(resource, { ...options, waitMs: 0 });
    } catch (error) {
      if (error instanceof AcquireTimeoutError) return null;
      throw error;
    }
  }

  /**
   * Runs fn under a lease and returns fn's value. If the lease was lost during fn, rejects with
   * LeaseLostError once fn has settled. A release that fails hides neither fn's value nor its
   * error.
   */
  run<T>(resource: string, fn: RunFunction<T>): Promise<T>;
  run<T>(resource: string, options: AcquireOptions, fn: RunFunction<T>): Promise<T>;
  async run<T>(resource: string, ...rest: readonly unknown[]): Promise<T> {
    const [options, fn] = runArguments<AcquireOptions, T>(rest, "name");
    return runUnder(this, await this.acquire(resource, options), fn);
  }

  /**
   * Readers hold the lock together, a writer holds it alone. A plain acquire of the same name is a
   * writer.
   */
  rwLock(name: string, defaults?: RecipeDefaults): RwLock {
    return rwLock(this, name, defaults);
  }

  /**
   * At most `permits` holders at once. A plain acquire of the same name holds the resource alone.
   */
  semaphore(name: string, options: SemaphoreOptions): Semaphore {
    return semaphore(this, name, options);
  }

  /**
   * Runs fn unless somebody else runs it now or has just run it. For work that many processes start
   * at the same time and that should be done once. Never waits.
   */
  once<T>(name: string, options: OnceOptions, fn: RunFunction<T>): Promise<OnceResult<T>>;
  once<T>(name: string, ...rest: readonly unknown[]): Promise<OnceResult<T>> {
    return once(this, this.#caller.clock, name, rest);
  }

  /** Whether the grant of a sequencer is alive at the backend now; Chubby's CheckSequencer. */
  async check(sequencer: string): Promise<boolean> {
    this.#refuseWhenClosed();
    const sequence = parseSequencer(sequencer);
    return this.#call((call) => this.#caller.engine.check(sequence, call));
  }

  /** Who holds and who waits. For people: the answer may be out of date when you read it. */
  async inspect(resource: string): Promise<ResourceView> {
    this.#refuseWhenClosed();
    checkResource(resource);
    return written(await this.#call((call) => this.#caller.engine.inspect(resource, call)));
  }

  /** All resources that are held, waited for or closed by a lock-delay, page by page. */
  async *list(options: ListOptions = {}): AsyncGenerator<ResourceView, void, undefined> {
    refuseUnknown(options, LIST, "list");
    const match = options.match ?? "*";
    if (typeof match !== "string" || match === "") {
      throw new UsageError(`match is ${show(match)}; it must be a glob like "invoice:*"`);
    }
    let cursor: string | null = null;
    do {
      this.#refuseWhenClosed();
      options.signal?.throwIfAborted();
      const filter: ListFilter = { match, cursor, max: LIST_PAGE };
      const page: ListPage = await this.#call((call) => this.#caller.engine.list(filter, call));
      yield* page.views.map(written);
      cursor = page.cursor;
    } while (cursor !== null);
  }

  /**
   * Forbids renewal of one grant and tells its holder. The successor follows at release or expiry.
   */
  async revoke(resource: string, options: RevokeOptions): Promise<"revoked" | "gone"> {
    this.#refuseWhenClosed();
    checkResource(resource);
    if (options !== undefined) refuseUnknown(options, REVOKE, "revoke");
    const token = options?.token;
    if (typeof token !== "bigint") {
      throw new UsageError(
        `revoke needs the token of the grant as a bigint, got ${show(token)}; inspect() shows it`,
      );
    }
    const { force = false } = options;
    // The string "false" from a query must not break exclusion.
    if (typeof force !== "boolean") {
      throw new UsageError(`force is ${show(force)}; it must be true or false`);
    }
    const ref = { resource, token, force };
    return this.#call((call) => this.#caller.engine.revoke(ref, call));
  }

  /**
   * Ends all waits with ClosedError, tells all holders to stop, releases what is held, and closes
   * what the engine opened. A function of run() or once() has a second to end in. If it does not
   * end, its lock ends with its ttl.
   */
  close(): Promise<void> {
    // Set before anything runs, so that a grant that arrives now sees that the locks are closed.
    this.#waits.isClosed = true;
    this.#closing ??= Promise.resolve().then(() => this.#close());
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #tellEnclosing<T>(waiting: Promise<T>, resource: string, { mode }: Terms): Promise<T> {
    try {
      return await waiting;
    } catch (error) {
      throw tellEnclosing(this, resource, mode, error);
    }
  }

  async #close(): Promise<void> {
    endWaits(this.#waits);
    const leases = this.#keeper.grants.flatMap((grant) => grant.lease ?? []);
    await endLeases(leases, runsOf(this), this.#caller.clock);
    await this.#caller.settled();
    this.#waits.heartbeats?.close();
    this.#stopWatching?.();
    await this.#caller.engine.close();
  }

  #terms(options: AcquireOptions): Terms {
    const { name, traits } = this.#caller.engine;
    return resolveAcquire(options, this.#connection, name, traits);
  }

  #call<T>(ask: (call: Call) => Promise<T>): Promise<T> {
    const timeoutMs = this.#connection.defaults.callTimeoutMs ?? ACQUIRE_DEFAULTS.callTimeoutMs;
    return this.#caller.call(timeoutMs, ask);
  }

  #refuseWhenClosed(): void {
    if (this.#waits.isClosed) throw new UsageError("these locks were closed; connect again");
  }
}

/** A view that JSON.stringify can write. */
function written(view: ResourceView): ResourceView {
  const holders = view.holders.map((holder) => writesAsJson({ ...holder }));
  return { ...view, holders };
}
