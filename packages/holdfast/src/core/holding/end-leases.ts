import type { Clock } from "../runtime/clock.js";
import type { HeldLease, Lease } from "./lease.js";

// How long close() waits for functions that it told to stop.
const STOPPING_MS = 1_000;

/**
 * Tells every holder to stop, and releases. A function of run() or once() has a second to end in.
 * If it does not end, its resource is not released while it works; the resource becomes free when
 * the ttl is over.
 */
export async function endLeases(
  leases: readonly HeldLease[],
  runs: ReadonlyMap<Lease, Promise<unknown>>,
  clock: Clock,
): Promise<void> {
  for (const lease of leases) lease.lose("closed", false);
  const alone = leases.filter((lease) => !runs.has(lease));
  const works = leases.flatMap((lease) => runs.get(lease) ?? []);
  await Promise.all([
    ...alone.map((lease) => lease[Symbol.asyncDispose]()),
    settledSoon(works, clock),
  ]);
  for (const lease of leases) lease.letExpire();
}

/** Waits until all of these have settled, at most STOPPING_MS. */
function settledSoon(works: readonly Promise<unknown>[], clock: Clock): Promise<void> {
  if (works.length === 0) return Promise.resolve();
  return new Promise((resolve) => {
    const timer = clock.timer(STOPPING_MS, resolve, true);
    void Promise.allSettled(works).then(() => {
      timer.cancel();
      resolve();
    });
  });
}
