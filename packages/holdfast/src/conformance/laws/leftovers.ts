import assert from "node:assert";
import { sleep, systemClock } from "../../core/runtime/clock.js";

const SETTLING_MS = 3_000;

/** The resources that keep this process alive right now, by kind. */
export interface ActiveResources {
  /** Fails if any kind has grown since. */
  noMoreThan(before: ActiveResources): void;
  of(kind: string): number;
}

/** Pending answers keep their timers until they arrive; after that nothing may be left. */
export async function leavesNoMoreThan(
  before: ActiveResources,
  settlingMs = SETTLING_MS,
): Promise<void> {
  const until = systemClock.now() + settlingMs;
  for (;;) {
    try {
      activeResources().noMoreThan(before);
      return;
    } catch (error) {
      if (systemClock.now() >= until) throw error;
    }
    await sleep(systemClock, 20, undefined);
  }
}

export function activeResources(): ActiveResources {
  const counts = new Map<string, number>();
  for (const kind of process.getActiveResourcesInfo()) {
    // An immediate ends with this turn of the event loop, so it cannot be left behind.
    if (kind !== "Immediate") counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  return {
    of: (kind) => counts.get(kind) ?? 0,
    noMoreThan(before) {
      for (const [kind, count] of counts) {
        const had = before.of(kind);
        assert(
          count <= had,
          `${count} of ${kind} keep the process alive, and ${had} did before: a call may still be ` +
            "under way, or the client or a relay of the harness has opened more",
        );
      }
    },
  };
}
