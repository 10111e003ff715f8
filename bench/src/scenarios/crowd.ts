import { checkExclusion } from "../measuring/exclusion.js";
import { pause } from "../measuring/instant.js";
import type { Measurement } from "../measuring/measurement.js";
import { type Section, unpack } from "../measuring/section-log.js";
import type { Column, Measures, Scenario } from "../measuring/suite.js";
import { GAVE_UP } from "./contention.js";

export const WAITERS = 500;
// Heartbeats come about once a second. A shorter window would see none, or too many.
const IDLE_FACTOR = 4;
const SETTLE_MS = 300;
const DRAIN_MS = 10_000;
const QUICK_DRAIN_MS = 2_000;

export const CROWD_COLUMNS: readonly [Column, ...Column[]] = [
  { key: "drainMs", title: "drain all", kind: "ms" },
  { key: "served", title: "served", kind: "count", better: "more" },
  { key: "cpu", title: "idle CPU", kind: "percent" },
  { key: "calls", title: "idle calls", kind: "rate" },
  GAVE_UP,
];

export const crowd: Scenario = {
  id: "crowd",
  title: `${WAITERS} waiters behind one holder`,
  about: `What ${WAITERS} waiters of one process cost while nothing happens, and how long until all had their turn.`,
  reach: "process",
  columns: CROWD_COLUMNS,
  better: "less",
  measure: (stage) => measureCrowd(stage, false),
};

/**
 * Measures waiters behind one holder, or, with `apart`, each behind its own holder on its own
 * resource.
 */
export async function measureCrowd(stage: Measurement, apart: boolean): Promise<Measures> {
  // The holder has its own process where the lock works between processes.
  const alone = stage.contender.reach !== "host";
  const workers = await stage.workers(alone ? 1 : 2, { counting: true });
  const holder = workers[0]!;
  const waiting = workers.at(-1)!;
  if (apart) await holder.call("hold", WAITERS);
  else await holder.call("acquire");
  await waiting.call("gather", { waiters: WAITERS, apart });
  await pause(Math.min(SETTLE_MS, stage.seconds * 1e3));

  const look = async () => {
    const usage = await waiting.call("usage");
    return { ...usage, calls: (await stage.calls()) ?? usage.calls };
  };
  const before = await look();
  await pause(stage.seconds * 1e3 * IDLE_FACTOR);
  const after = await look();
  const elapsedMs = after.at - before.at;

  const forMs = stage.quick ? QUICK_DRAIN_MS : DRAIN_MS;
  const drained = waiting.call("drain", { forMs });
  const leftAt = await (apart ? holder.call("letGo", WAITERS) : holder.call("release"));
  const { sections, gaveUp } = await drained;
  const served = unpack(sections);
  checkAgainstHolder(stage.name, served, leftAt, apart);
  const lastAt = Math.max(...served.map((section) => section.leftAt));
  return {
    // If not all were served, the true time is longer. The next column shows how many were.
    drainMs: served.length < WAITERS ? forMs : lastAt - leftAt,
    served: served.length,
    cpu: (100 * (after.cpuMs - before.cpuMs)) / elapsedMs,
    ...(after.calls === null || before.calls === null
      ? {}
      : { calls: (after.calls - before.calls) / (elapsedMs / 1e3) }),
    ...(gaveUp > 0 ? { gaveUp } : {}),
  };
}

function checkAgainstHolder(
  name: string,
  served: readonly Section[],
  leftAt: number,
  apart: boolean,
): void {
  const held = { waiter: -1, askedAt: -Infinity, enteredAt: -Infinity, leftAt };
  const groups = apart ? served.map((section) => [section]) : [[...served]];
  for (const group of groups) checkExclusion(name, [[held], group]);
}
