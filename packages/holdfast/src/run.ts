import { AsyncLocalStorage } from "node:async_hooks";
import type { Mode } from "./engine.js";
import { LeaseLostError, UsageError } from "./errors.js";
import { emit } from "./events.js";
import { JoinedLease } from "./joined-lease.js";
import type { Lease } from "./lease.js";

export type RunFunction<T> = (lease: Lease) => T | PromiseLike<T>;

/** The enclosing leases of one asynchronous context, innermost first. */
interface Enclosure {
  /** Whose lease it is: leases of other connections are not joined. */
  readonly owner: object;
  readonly lease: Lease;
  readonly outer: Enclosure | undefined;
}

const enclosures = new AsyncLocalStorage<Enclosure>();

/** Reads (fn) or (options, fn). */
export function runArguments<Options extends object, T>(
  first: Options | RunFunction<T>,
  second: RunFunction<T> | undefined,
  usage: string,
): [Options | Record<string, never>, RunFunction<T>] {
  const [options, fn] = typeof first === "function" ? [{}, first] : [first, second];
  if (typeof fn === "function") return [options, fn];
  throw new UsageError(`run takes ${usage}, and got no function`);
}

/** Runs fn under a lease that was just acquired, and ends the lease. */
export async function runUnder<T>(owner: object, lease: Lease, fn: RunFunction<T>): Promise<T> {
  const outer = enclosures.getStore();
  let outcome: { value: T } | { error: unknown };
  try {
    outcome = { value: await enclosures.run({ owner, lease, outer }, () => fn(lease)) };
  } catch (error) {
    outcome = { error };
  }
  const lost = (lease.held ? null : lossOf(lease)) ?? (await lastWord(lease));
  if (lost !== null) {
    await lease[Symbol.asyncDispose]();
    if ("error" in outcome && !causes(outcome.error, lost)) lost.cause ??= outcome.error;
    throw lost;
  }
  if ("error" in outcome) throw outcome.error;
  return outcome.value;
}

/** A lease that joins the one which an enclosing run of the same owner holds; null without one. */
export function joinEnclosing(owner: object, resource: string, mode: Mode): Lease | null {
  for (let at = enclosures.getStore(); at !== undefined; at = at.outer) {
    if (at.owner !== owner || at.lease.resource !== resource || !at.lease.held) continue;
    if (at.lease.mode === "shared" && mode === "exclusive") {
      throw new UsageError(
        `"${resource}" is held shared by the enclosing run; a shared lease cannot become exclusive`,
      );
    }
    return new JoinedLease(at.lease);
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
