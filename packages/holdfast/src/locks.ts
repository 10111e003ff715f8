import type { ClaimContext } from "./core/acquiring/claim-request.js";
import { onAbort } from "./core/acquiring/on-abort.js";
import { PendingClaim } from "./core/acquiring/pending-claim.js";
import { checkResource } from "./core/acquiring/resource.js";
import { WaiterHeartbeats } from "./core/acquiring/waiter-heartbeats.js";
import { Caller } from "./core/calling/call.js";
import { abandonGrant } from "./core/calling/release.js";
import { TokenCheck } from "./core/calling/token-check.js";
import { Cohort, type CohortContext } from "./core/cohort/cohort.js";
import type { SharedContext } from "./core/cohort/shared-queue.js";
import { SharedQueues } from "./core/cohort/shared-queues.js";
import { endLeases } from "./core/holding/end-leases.js";
import type { Grant } from "./core/holding/grant.js";
import type { HeldLease, Lease } from "./core/holding/lease.js";
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
import type { Call, Engine, EngineTraits, ListFilter, ListPage, ResourceView } from "./engine.js";
import { AcquireTimeoutError, ClosedError, show, UsageError } from "./errors.js";
import { channels, emit } from "./events.js";
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
  readonly #context: ClaimContext;
  readonly #keeper: Keeper;
  readonly #direct: DirectController;
  readonly #cohorts = new GenerationalMap<string, Cohort>();
  readonly #cohortContext: CohortContext;
  /** By resource. */
  readonly #shared = new GenerationalMap<string, SharedQueues>();
  readonly #sharedContext: SharedContext;
  readonly #waits = new Set<PendingClaim>();
  readonly #stopWatching: (() => void) | undefined;
  /** The terms of an acquire without options. */
  readonly #defaults: Terms;
  #closing: Promise<void> | null = null;

  constructor(engine: Engine, options: ConnectOptions = {}) {
    checkEngine(engine, "new Locks", "an engine, like redisEngine({ client })");
    this.#connection = resolveConnect(options);
    const { clock, drift } = this.#connection;
    this.#caller = new Caller(engine, clock);
    // Wrong defaults fail here, at connect, and not at the first acquire.
    this.#defaults = this.#terms({});
    const heartbeats = engine.queue ? new WaiterHeartbeats(this.#caller, engine.queue) : null;
    const tokenCheck = new TokenCheck(engine.name);
    this.#context = { caller: this.#caller, tokenCheck, heartbeats, drift };
    this.#keeper = new Keeper(this.#caller);
    this.#direct = new DirectController(this.#caller, this.#keeper);
    this.#cohortContext = {
      ...{ context: this.#context, direct: this.#direct },
      budget: this.#connection,
      onIdle: (cohort) => {
        if (this.#cohorts.get(cohort.key) === cohort) this.#cohorts.delete(cohort.key);
      },
    };
    this.#sharedContext = { context: this.#context, direct: this.#direct };
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
      const terms = options === undefined ? this.#defaults : this.#terms(options);
      terms.signal?.throwIfAborted();
      const joined = terms.reentrant ? joinEnclosing(this, resource, terms.mode) : null;
      if (joined !== null) return Promise.resolve(joined);
      const waiting = this.#wait(resource, terms);
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
    return this.#call((call) => this.#caller.engine.inspect(resource, call));
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
      yield* page.views;
      cursor = page.cursor;
    } while (cursor !== null);
  }

  /**
   * Forbids renewal of one grant and tells its holder. The successor follows at release or expiry.
   */
  async revoke(resource: string, options: RevokeOptions): Promise<"revoked" | "gone"> {
    this.#refuseWhenClosed();
    checkResource(resource);
    const token = options?.token;
    if (typeof token !== "bigint") {
      throw new UsageError(
        `revoke needs the token of the grant as a bigint, got ${show(token)}; inspect() shows it`,
      );
    }
    refuseUnknown(options, REVOKE, "revoke");
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
    // Assigned before anything runs, so that a grant that arrives now sees that the locks are
    // closed.
    this.#closing ??= Promise.resolve().then(() => this.#close());
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #wait(resource: string, terms: Terms): Promise<HeldLease> {
    const startedAt = this.#caller.clock.now();
    const { mode, label } = terms;
    if (channels.wait.hasSubscribers) channels.wait.publish({ resource, mode, label });
    // Only leases that the keeper renews can be handed over; the others count their own life.
    const canHandOver = mode === "exclusive" && terms.renew;
    // Strict: one claim and one place in the backend's queue for each caller, even if others wait
    // here.
    const waiting =
      terms.fair === "strict"
        ? this.#waitAlone(resource, terms, startedAt)
        : canHandOver
          ? this.#waitInCohort(resource, terms, startedAt)
          : mode === "shared"
            ? this.#waitShared(resource, terms, startedAt)
            : this.#waitAlone(resource, terms, startedAt);
    const isObserved = channels["not-granted"].hasSubscribers;
    return isObserved ? this.#tellNotGranted(waiting, resource, terms, startedAt) : waiting;
  }

  async #tellEnclosing<T>(waiting: Promise<T>, resource: string, { mode }: Terms): Promise<T> {
    try {
      return await waiting;
    } catch (error) {
      throw tellEnclosing(this, resource, mode, error);
    }
  }

  async #tellNotGranted<T>(
    waiting: Promise<T>,
    resource: string,
    { mode, label, signal }: Terms,
    startedAt: number,
  ): Promise<T> {
    try {
      return await waiting;
    } catch (error) {
      const waitedMs = this.#caller.clock.now() - startedAt;
      const outcome = outcomeOf(error, signal);
      emit("not-granted", () => ({ resource, mode, label, waitedMs, outcome, error }));
      throw error;
    }
  }

  #waitAlone(resource: string, terms: Terms, startedAt: number): Promise<HeldLease> {
    return this.#contend(resource, terms, startedAt, (grant, now) => {
      if (this.#closing !== null) {
        abandonGrant(this.#caller, grant, terms.callTimeoutMs);
        throw closed();
      }
      return this.#direct.hold(grant, 0, terms, now);
    });
  }

  #waitInCohort(resource: string, terms: Terms, startedAt: number): Promise<HeldLease> {
    const { ttlMs, lockDelayMs } = this.#defaults;
    const usual = terms.ttlMs === ttlMs && terms.lockDelayMs === lockDelayMs;
    // A resource name never contains NUL, so keys cannot collide.
    const key = usual ? resource : `${terms.ttlMs}/${terms.lockDelayMs}\0${resource}`;
    if (terms.waitMs > 0) return this.#cohort(key, resource).wait(terms, startedAt);
    const known = this.#cohorts.get(key);
    if (known?.taken) {
      return Promise.reject(new AcquireTimeoutError(resource, 0, known.holders()));
    }
    return this.#contend(resource, terms, startedAt, (grant, now) =>
      this.#cohort(key, resource).adopt(grant, terms, now),
    );
  }

  #waitShared(resource: string, terms: Terms, startedAt: number): Promise<HeldLease> {
    const known = this.#shared.get(resource);
    if (terms.waitMs > 0) return (known ?? this.#sharedQueues(resource)).wait(terms, startedAt);
    const holders = known?.unsentHolders ?? null;
    if (holders !== null) return Promise.reject(new AcquireTimeoutError(resource, 0, holders));
    return this.#waitAlone(resource, terms, startedAt);
  }

  #sharedQueues(resource: string): SharedQueues {
    const onIdle = () => this.#shared.delete(resource);
    const queues = new SharedQueues(resource, this.#sharedContext, onIdle);
    this.#shared.add(resource, queues);
    return queues;
  }

  #cohort(key: string, resource: string): Cohort {
    const known = this.#cohorts.get(key);
    if (known !== undefined) return known;
    const cohort = new Cohort(key, resource, this.#cohortContext);
    this.#cohorts.add(key, cohort);
    // An answer may come while close() runs. Its caller must not get a lease that nobody will
    // release.
    if (this.#closing !== null) cohort.close(closed());
    return cohort;
  }

  /** Makes a claim for one caller. close() can end it. */
  #contend(
    resource: string,
    terms: Terms,
    startedAt: number,
    leaseOn: (grant: Grant, now: number) => HeldLease,
  ): Promise<HeldLease> {
    return new Promise((resolve, reject) => {
      const { waitMs, retry, signal } = terms;
      const over = () => {
        this.#waits.delete(claim);
        stopListening?.();
      };
      const granted = (grant: Grant, now: number) => {
        over();
        try {
          const lease = leaseOn(grant, now);
          emit("acquired", () => ({ ...lease.subject(), waitedMs: lease.acquiredAt - startedAt }));
          resolve(lease);
        } catch (error) {
          reject(error);
        }
      };
      const failed = (error: unknown) => {
        over();
        reject(error);
      };
      const request = { resource, terms, tokens: 1, startedAt, waitMs, retry };
      const claim = new PendingClaim(this.#context, request, {
        granted,
        failed,
        onHolders: () => {},
      });
      const stopListening = signal && onAbort(signal, () => claim.abort(signal.reason));
      this.#waits.add(claim);
      claim.start();
    });
  }

  async #close(): Promise<void> {
    for (const wait of this.#waits) wait.abort(closed());
    for (const registry of [this.#cohorts, this.#shared]) {
      for (const group of registry.values()) group.close(closed());
    }
    const leases = this.#keeper.grants.flatMap((grant) => grant.lease ?? []);
    await endLeases(leases, runsOf(this), this.#caller.clock);
    await this.#caller.settled();
    this.#context.heartbeats?.close();
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
    if (this.#closing !== null) throw new UsageError("these locks were closed; connect again");
  }
}

function outcomeOf(error: unknown, signal: AbortSignal | undefined) {
  if (error instanceof AcquireTimeoutError) return "busy";
  if (error instanceof ClosedError) return "closed";
  return signal?.aborted && error === signal.reason ? "aborted" : "failed";
}

/** Not a UsageError: the waiting caller did nothing wrong. */
function closed(): ClosedError {
  return new ClosedError("these locks were closed while this acquire waited");
}
