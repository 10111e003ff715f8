import { AsyncLocalStorage } from "node:async_hooks";
import type { Mode } from "../../engine.js";
import { AcquireTimeoutError, kindOf, LeaseLostError, UsageError } from "../../errors.js";
import { HeldLease, type Lease } from "./lease.js";
import { ReentrantLease } from "./reentrant-lease.js";

export type RunFunction<T> = (lease: Lease) => T | PromiseLike<T>;

/** The enclosing leases of one asynchronous context, innermost first. */
interface Enclosure {
  /** The connection of the lease. A lease of another connection is not joined. */
  readonly owner: object;
  readonly lease: Lease;
  readonly outer: Enclosure | undefined;
}

const enclosures = new AsyncLocalStorage<Enclosure>();

/** By owner: its running functions. Each stays here until its lease has ended too. */
const running = new WeakMap<object, Map<Lease, Promise<unknown>>>();

/** Reads (fn) or (options, fn). An argument anywhere else would be ignored, so it is refused. */
export function runArguments<Options extends object, T>(
  args: readonly unknown[],
  named: "name" | null,
): [Options | undefined, RunFunction<T>] {
  const given = args.slice(0, args.findLastIndex((arg) => arg !== undefined) + 1);
  const [options, fn] = given.length === 1 ? [undefined, given[0]] : given;
  const isObject = typeof options === "object" && options !== null;
  if (given.length <= 2 && typeof fn === "function" && (options === undefined || isObject)) {
    return [options as Options | undefined, fn as RunFunction<T>];
  }
  const forms = [["fn"], ["options", "fn"]].map((form) => (named ? [named, ...form] : form));
  throw wrongOrder("run", forms, named ? [named] : [], given);
}

/** names: the names of the arguments that are known to be right. */
export function wrongOrder(
  verb: string,
  forms: readonly (readonly string[])[],
  names: readonly string[],
  rest: readonly unknown[],
): UsageError {
  const say = (words: readonly string[]) => `${verb}(${words.join(", ")})`;
  const got = say([...names, ...rest.map(kindOf)]);
  return new UsageError(`${verb} is called as ${forms.map(say).join(" or ")}, and got ${got}`);
}

/** The running functions of this owner. Each promise settles when its lease has ended too. */
export function runsOf(owner: object): ReadonlyMap<Lease, Promise<unknown>> {
  return running.get(owner) ?? new Map();
}

/** Runs fn under a lease that was just acquired, then ends the lease. */
export function runUnder<T>(owner: object, lease: Lease, fn: RunFunction<T>): Promise<T> {
  let runs = running.get(owner);
  if (runs === undefined) {
    runs = new Map();
    running.set(owner, runs);
  }
  const ended = runToEnd(owner, lease, fn);
  runs.set(lease, ended);
  const forget = () => runs.delete(lease);
  ended.then(forget, forget);
  return ended;
}

async function runToEnd<T>(owner: object, lease: Lease, fn: RunFunction<T>): Promise<T> {
  const outer = enclosures.getStore();
  let outcome: { value: T } | { error: unknown };
  try {
    outcome = { value: await enclosures.run({ owner, lease, outer }, () => fn(lease)) };
  } catch (error) {
    outcome = { error };
  }
  const lost = (lease.held ? null : lossOf(lease)) ?? (await releaseAfter(lease));
  if (lost !== null) {
    // close() told fn to stop, and fn ended while nobody else could hold the resource: nothing was
    // lost.
    const isInTime = lost.reason === "closed" && (lease as HeldLease).isStillOurs;
    await lease[Symbol.asyncDispose]();
    if (isInTime) return settledBy(outcome);
    if ("error" in outcome && !causes(outcome.error, lost)) lost.cause ??= outcome.error;
    throw lost;
  }
  return settledBy(outcome);
}

function settledBy<T>(outcome: { value: T } | { error: unknown }): T {
  if ("error" in outcome) throw outcome.error;
  return outcome.value;
}

/**
 * Adds a hint to the error when the acquire waited for the lease of its own enclosing run. Without
 * it, the caller would look for another holder.
 */
export function tellEnclosing(
  owner: object,
  resource: string,
  mode: Mode,
  error: unknown,
): unknown {
  if (!(error instanceof AcquireTimeoutError)) return error;
  const lease = enclosing(owner, resource);
  if (lease === null) return error;
  const { waitedMs, holders } = error;
  // A shared claim may wait for a writer in the queue or for a permit, so this run need not be the
  // cause.
  if (lease.mode === "shared" && !holders.some(({ token }) => token === lease.token)) return error;
  const hint =
    lease.mode === "shared" && mode === "exclusive"
      ? "; your own enclosing run holds it as shared, and cannot become exclusive"
      : "; your own enclosing run holds it, and an acquire with reentrant: true joins it";
  return new AcquireTimeoutError(resource, waitedMs, holders, hint);
}

/** Whether this code runs inside any run(). */
export function isEnclosed(): boolean {
  return enclosures.getStore() !== undefined;
}

/** A lease that joins the lease of an enclosing run of the same owner; null without one. */
export function joinEnclosing(owner: object, resource: string, mode: Mode): Lease | null {
  const lease = enclosing(owner, resource);
  if (lease === null) return null;
  if (lease.mode === "shared" && mode === "exclusive") {
    throw new UsageError(
      `"${resource}" is held shared by the enclosing run; a shared lease cannot become exclusive`,
    );
  }
  return new ReentrantLease(lease);
}

/** The lease that the innermost enclosing run of the same owner holds on this resource. */
function enclosing(owner: object, resource: string): Lease | null {
  for (let at = enclosures.getStore(); at !== undefined; at = at.outer) {
    if (at.owner === owner && at.lease.resource === resource && at.lease.held) return at.lease;
  }
  return null;
}

/**
 * Releases the lease at the end of a run. "gone" means that others may have held the resource
 * during the run.
 */
async function releaseAfter(lease: Lease): Promise<LeaseLostError | null> {
  const isOurs = lease instanceof HeldLease;
  const outcome = await (isOurs ? lease.releaseInTime({ during: "release" }) : lease.release());
  if (outcome !== "gone") return null;
  return lossOf(lease) ?? new LeaseLostError(lease.resource, lease.token, "expired", 0);
}

/**
 * Whether wanted is in the chain of causes. The set prevents an endless loop on circular causes.
 */
function causes(error: unknown, wanted: Error): boolean {
  const seen = new Set<unknown>();
  for (let at = error; at instanceof Error && !seen.has(at); at = at.cause) {
    if (at === wanted) return true;
    seen.add(at);
  }
  return false;
}

function lossOf(lease: Lease): LeaseLostError | null {
  const { aborted, reason } = lease.signal;
  return aborted && reason instanceof LeaseLostError ? reason : null;
}
