import { AsyncLocalStorage } from "node:async_hooks";
import type { Mode } from "../../engine.js";
import { AcquireTimeoutError, kindOf, LeaseLostError, UsageError } from "../../errors.js";
import { emit } from "../../events.js";
import type { HeldLease, Lease } from "./lease.js";
import { ReentrantLease } from "./reentrant-lease.js";

export type RunFunction<T> = (lease: Lease) => T | PromiseLike<T>;

/** The enclosing leases of one asynchronous context, innermost first. */
interface Enclosure {
  /** Whose lease it is: leases of other connections are not joined. */
  readonly owner: object;
  readonly lease: Lease;
  readonly outer: Enclosure | undefined;
}

const enclosures = new AsyncLocalStorage<Enclosure>();

/** By owner: the functions that run under leases of its own, until their leases have ended, too. */
const running = new WeakMap<object, Map<Lease, Promise<unknown>>>();

/** Reads (fn) or (options, fn). What stands anywhere else would be ignored, so it is refused. */
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

/** names: of what is known to be in its place. */
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

/** The functions that run now under leases of this owner; each settles when its lease has ended, too. */
export function runsOf(owner: object): ReadonlyMap<Lease, Promise<unknown>> {
  return running.get(owner) ?? new Map();
}

/** Runs fn under a lease that was just acquired, and ends the lease. */
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
  const lost = (lease.held ? null : lossOf(lease)) ?? (await lastWord(lease));
  if (lost !== null) {
    // Told to stop by close(), it has ended while nobody else could be let in: nothing was lost.
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
 * What kept an acquire out, with a word on the run around it where that is what it waited for. Whoever
 * forgets that it holds the resource already would look for somebody else.
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
  // Readers wait for a writer in the queue, or for a permit: then it need not be this run that is in the way.
  if (lease.mode === "shared" && !holders.some(({ token }) => token === lease.token)) return error;
  const hint =
    lease.mode === "shared" && mode === "exclusive"
      ? "; your own enclosing run holds it as shared, and cannot become exclusive"
      : "; your own enclosing run holds it, and an acquire with reentrant: true joins it";
  return new AcquireTimeoutError(resource, waitedMs, holders, hint);
}

/** Whether this is called inside a run at all. */
export function isEnclosed(): boolean {
  return enclosures.getStore() !== undefined;
}

/** A lease that joins the one which an enclosing run of the same owner holds; null without one. */
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

/** The backend's last word on a run: gone means that others may have been let in meanwhile. */
async function lastWord(lease: Lease): Promise<LeaseLostError | null> {
  try {
    if ((await lease.release()) === "released") return null;
    return lossOf(lease) ?? new LeaseLostError(lease.resource, lease.token, "expired", 0);
  } catch (error) {
    emit("failed", () => ({ during: "release", error, resource: lease.resource }));
    return null;
  }
}

/** Whether wanted stands anywhere in the chain of causes: a circle would trap who walks it. */
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
