import { type LoopSlice, runLoops, sum } from "../measuring/loops.js";
import type { Measurement } from "../measuring/measurement.js";
import { fairPercentile, leastBy, median } from "../measuring/statistics.js";
import type { Column, Measures, Runner } from "../measuring/suite.js";

export const RATE: Column = { key: "rate", title: "per second", kind: "rate" };
export const WAITS: readonly Column[] = [
  { key: "p50", title: "p50 wait", kind: "ms", better: "less" },
  { key: "p99", title: "p99 wait", kind: "ms", better: "less" },
  { key: "longest", title: "longest", kind: "ms", better: "less" },
];
/** CPU time of all processes. A busy machine changes it less than it changes elapsed time. */
export const CPU: Column = { key: "cpuMs", title: "CPU a turn", kind: "ms", better: "less" };
export const FAIRNESS: Column = { key: "jain", title: "Jain", kind: "part" };
/** Commands sent to the server. One command and its answer are one round trip. */
export const CALLS: Column = { key: "calls", title: "commands", kind: "each", better: "less" };
export const GAVE_UP: Column = { key: "gaveUp", title: "gave up", kind: "count", better: "less" };

interface ContentionTerms {
  readonly processes: number;
  readonly waiters: number;
  /** Whether each waiter wants its own resource; otherwise all want the same. */
  readonly apart?: boolean;
}

/** How a scenario is cut into slices. A slice lasts this fraction of `seconds`, after a lead-in. */
interface Cut {
  readonly slicesARound: number;
  readonly part: number;
  readonly leadInMs: number;
}

/**
 * Where nobody waits, short slices alternate quickly. A pipeline is full after a few turns. The
 * lead-in is longer, because a process that was idle first needs its code and data in the caches
 * again.
 */
const SHORT: Cut = { slicesARound: 30, part: 0.1, leadInMs: 150 };
/** Peers that poll every 300 ms need longer slices. */
const LONG: Cut = { slicesARound: 3, part: 1, leadInMs: 400 };

/** Several processes, each with several waiters, that take turns. */
export function contention({ processes, waiters, apart = false }: ContentionTerms) {
  const contended = processes * waiters > 1 && !apart;
  const { slicesARound, part, leadInMs } = contended ? LONG : SHORT;
  const open = async (stage: Measurement): Promise<Runner<Slice>> => {
    const workers = await stage.workers(processes, { pipelining: apart });
    // Commands that a library sends at its first use do not belong to a turn.
    for (const worker of workers) {
      await worker.call("acquire");
      await worker.call("release");
    }
    const run = (leadMs: number, forMs: number) =>
      runLoops(stage.name, workers, { waiters, apart, leadInMs: leadMs, forMs });
    return {
      warmUp: () => run(0, stage.warmUpMs),
      async slice() {
        const before = await stage.calls();
        const slice = await run(Math.min(leadInMs, stage.warmUpMs), part * stage.seconds * 1e3);
        const after = await stage.calls();
        return { ...slice, calls: before === null || after === null ? null : after - before };
      },
      summary: (slices) => summary(slices, processes, contended),
    };
  };
  return { slicesARound, open };
}

interface Slice extends LoopSlice {
  readonly calls: number | null;
}

function summary(slices: readonly Slice[], processes: number, contended: boolean): Measures {
  const quiet = leastBy(slices, ({ stolenMs }) => stolenMs);
  const waits = quiet[0]!.waits.map((_, waiter) => quiet.flatMap((slice) => slice.waits[waiter]!));
  const total = (key: "cpuMs" | "turns" | "gaveUp") => sum(quiet.map((slice) => slice[key]));
  const calls = quiet.flatMap((slice) => slice.calls ?? []);
  const gaveUp = sum(slices.map((slice) => slice.gaveUp));
  return {
    rate: median(quiet.map((slice) => slice.rate)),
    p50: fairPercentile(waits, 0.5),
    p99: fairPercentile(waits, 0.99),
    longest: waits.flat().reduce((a, b) => Math.max(a, b), 0),
    cpuMs: total("cpuMs") / total("turns"),
    ...(contended && { jain: median(quiet.map((slice) => slice.jain)) }),
    ...(processes > 1 && { jainProcesses: median(quiet.map((slice) => slice.jainProcesses)) }),
    ...(calls.length > 0 && { calls: sum(calls) / total("turns") }),
    ...(gaveUp > 0 && { gaveUp }),
  };
}
