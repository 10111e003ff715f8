import { AcquireTimeoutError, ClosedError } from "../../errors.js";
import { channels, emit } from "../../events.js";
import type { Terms } from "../../options.js";
import type { HeldLease } from "../holding/lease.js";
import { claimAlone, closedError } from "./claim-alone.js";
import { Cohort } from "./cohort.js";
import { SharedQueues } from "./shared-queues.js";
import type { WaitContext } from "./wait-context.js";

/** Waits for one lease, and tells listeners of events how the wait begins and fails. */
export function waitForLease(
  common: WaitContext,
  resource: string,
  terms: Terms,
): Promise<HeldLease> {
  const startedAt = common.caller.clock.now();
  const { mode, label } = terms;
  if (channels.wait.hasSubscribers) channels.wait.publish({ resource, mode, label });
  const waiting = wait(common, resource, terms, startedAt);
  const isObserved = channels["not-granted"].hasSubscribers;
  return isObserved ? tellNotGranted(common, waiting, resource, terms, startedAt) : waiting;
}

/** Ends all waits with ClosedError. What is held stays held. */
export function endWaits({ alone, cohorts, shared }: WaitContext): void {
  for (const claim of alone) claim.abort(closedError());
  for (const registry of [cohorts, shared]) {
    for (const waiters of registry.values()) waiters.close(closedError());
  }
}

/** Waits in a cohort, in a shared queue or alone, as the terms need it. */
function wait(
  common: WaitContext,
  resource: string,
  terms: Terms,
  startedAt: number,
): Promise<HeldLease> {
  // Strict: one claim and one place in the backend's queue for each caller, even if others wait
  // here.
  if (terms.fair === "strict") return waitAlone(common, resource, terms, startedAt);
  if (terms.mode === "shared") return waitShared(common, resource, terms, startedAt);
  // Only leases that the keeper renews can be handed over; the others count their own life.
  return terms.renew
    ? waitInCohort(common, resource, terms, startedAt)
    : waitAlone(common, resource, terms, startedAt);
}

function waitAlone(
  common: WaitContext,
  resource: string,
  terms: Terms,
  startedAt: number,
): Promise<HeldLease> {
  return claimAlone(common, resource, terms, startedAt, (grant, now) =>
    common.direct.hold(grant, 0, terms, now),
  );
}

function waitInCohort(
  common: WaitContext,
  resource: string,
  terms: Terms,
  startedAt: number,
): Promise<HeldLease> {
  const { ttlMs, lockDelayMs } = common.defaults;
  const usual = terms.ttlMs === ttlMs && terms.lockDelayMs === lockDelayMs;
  // A resource name never contains NUL, so keys cannot collide.
  const key = usual ? resource : `${terms.ttlMs}/${terms.lockDelayMs}\0${resource}`;
  if (terms.waitMs > 0) return cohortOf(common, key, resource).wait(terms, startedAt);
  const known = common.cohorts.get(key);
  if (known?.taken) return Promise.reject(new AcquireTimeoutError(resource, 0, known.holders()));
  return claimAlone(common, resource, terms, startedAt, (grant, now) =>
    cohortOf(common, key, resource).adopt(grant, terms, now),
  );
}

function waitShared(
  common: WaitContext,
  resource: string,
  terms: Terms,
  startedAt: number,
): Promise<HeldLease> {
  const known = common.shared.get(resource);
  if (terms.waitMs > 0) {
    return (known ?? addSharedQueues(common, resource)).wait(terms, startedAt);
  }
  const holders = known?.unsentHolders ?? null;
  if (holders !== null) return Promise.reject(new AcquireTimeoutError(resource, 0, holders));
  return waitAlone(common, resource, terms, startedAt);
}

function cohortOf(common: WaitContext, key: string, resource: string): Cohort {
  const known = common.cohorts.get(key);
  if (known !== undefined) return known;
  const cohort = new Cohort(key, resource, common);
  common.cohorts.add(key, cohort);
  return cohort;
}

function addSharedQueues(common: WaitContext, resource: string): SharedQueues {
  const queues = new SharedQueues(resource, common);
  common.shared.add(resource, queues);
  return queues;
}

async function tellNotGranted<T>(
  { caller }: WaitContext,
  waiting: Promise<T>,
  resource: string,
  { mode, label, signal }: Terms,
  startedAt: number,
): Promise<T> {
  try {
    return await waiting;
  } catch (error) {
    const waitedMs = caller.clock.now() - startedAt;
    const outcome = outcomeOf(error, signal);
    emit("not-granted", () => ({ resource, mode, label, waitedMs, outcome, error }));
    throw error;
  }
}

function outcomeOf(error: unknown, signal: AbortSignal | undefined) {
  if (error instanceof AcquireTimeoutError) return "busy";
  if (error instanceof ClosedError) return "closed";
  return signal?.aborted && error === signal.reason ? "aborted" : "failed";
}
