import { type LoopSlice, runLoops, sum } from "../measuring/loops.js";
import type { Stage } from "../measuring/stage.js";
import { fairPercentile, leastBy, median } from "../measuring/statistics.js";
import type { Column, Measures, Runner } from "../measuring/suite.js";

export const RATE: Column = { key: "rate", title: "per second", kind: "rate" };
export const WAITS: readonly Column[] = [
  { key: "p50", title: "p50 wait", kind: "ms", better: "less" },
  { key: "p99", title: "p99 wait", kind: "ms", better: "less" },
  { key: "longest", title: "longest", kind: "ms", better: "less" },
];
/** Of all processes together. Less at the mercy of a busy machine than anything by the clock. */
export const CPU: Column = { key: "cpuMs", title: "CPU a turn", kind: "ms", better: "less" };
export const FAIRNESS: Column = { key: "jain", title: "Jain", kind: "part" };
/** What a server is sent. One that is asked once and answers once has made a round trip. */
export const CALLS: Column = { key: "calls", title: "commands", kind: "each", better: "less" };
export const GAVE_UP: Column = { key: "gaveUp", title: "gave up", kind: "count", better: "less" };

interface Contention {
  readonly processes: number;
  readonly waiters: number;
  /** Each waiter wants a resource of its own; otherwise all want the same. */
  readonly apart?: boolean;
}

/** How a scenario's time is cut up: a slice lasts this part of `seconds`, after a lead-in. */
interface Cut {
  readonly slicesARound: number;
  readonly part: number;
  readonly leadInMs: number;
}

/**
 * Where nobody waits, short slices alternate quickly. A pipeline is full after a few turns; until a
 * process that rested has its code and data at hand again, it takes longer.
 */
const SHORT: Cut = { slicesARound: 30, part: 0.1, leadInMs: 150 };
/** Peers that look again after 300 ms need longer to show what they do. */
const LONG: Cut = { slicesARound: 3, part: 1, leadInMs: 400 };

/** Processes × waiters that take turns. */
export function contention({ processes, waiters, apart = false }: Contention) {
  const contended = processes * waiters > 1 && !apart;
  const { slicesARound, part, leadInMs } = contended ? LONG : SHORT;
  const open = async (stage: Stage): Promise<Runner<Slice>> => {
    const workers = await stage.workers(processes, { pipelining: apart });
    // What a library sends once, when it is used first, is no part of a turn.
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
