import { checkExclusion } from "../exclusion.js";
import { instant } from "../instant.js";
import { type Section, unpack } from "../section-log.js";
import type { Stage } from "../stage.js";
import { fairPercentile, jain } from "../statistics.js";
import type { Column, Measures } from "../suite.js";

const START_MS = 20;

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

/** Processes × waiters that take turns; counts only what happens after warming up. */
export async function measureContention(
  stage: Stage,
  { processes, waiters, apart = false }: Contention,
): Promise<Measures> {
  const workers = await stage.workers(processes, { pipelining: apart });
  // What a library sends once, when it is used first, is no part of a turn.
  for (const worker of workers) {
    await worker.call("acquire");
    await worker.call("release");
  }
  const callsBefore = await stage.calls();
  const from = instant() + START_MS;
  const warmAt = from + stage.warmUpMs;
  const until = warmAt + stage.seconds * 1e3;
  const reports = await Promise.all(
    workers.map((worker) => worker.call("contend", { waiters, apart, from, until })),
  );
  const callsAfter = await stage.calls();
  const logs = reports.map(({ sections }) => unpack(sections));
  if (!apart) checkExclusion(stage.name, logs);

  const endedAt = Math.min(...reports.map((report) => report.endedAt));
  const counts = (section: Section) => section.enteredAt >= warmAt && section.enteredAt < endedAt;
  const counted = logs.map((log) => log.filter(counts));
  const served = counted.flat();
  // Who asked in time and was served a little late has waited, too.
  const waited = logs.map((log) =>
    log.filter(({ askedAt, enteredAt }) => enteredAt >= warmAt && askedAt < endedAt),
  );
  const waits = reports.flatMap(({ pending }, i) => waitsOf(waited[i]!, waiters, pending, endedAt));
  const shares = counted.flatMap((log) => sharesOf(log, waiters));
  const turns = sum(logs.map((log) => log.length));
  const gaveUp = sum(reports.map((report) => report.gaveUp));
  return {
    rate: served.length / ((endedAt - warmAt) / 1e3),
    p50: fairPercentile(waits, 0.5),
    p99: fairPercentile(waits, 0.99),
    longest: waits.flat().reduce((a, b) => Math.max(a, b), 0),
    cpuMs: sum(reports.map((report) => report.cpuMs)) / turns,
    ...(shares.length > 1 ? { jain: jain(shares) } : {}),
    ...(processes > 1 ? { jainProcesses: jain(counted.map((log) => log.length)) } : {}),
    ...(callsBefore === null || callsAfter === null
      ? {}
      : { calls: (callsAfter - callsBefore) / turns }),
    ...(gaveUp > 0 ? { gaveUp } : {}),
  };
}

function sum(values: readonly number[]): number {
  return values.reduce((a, b) => a + b, 0);
}

/** How long each waiter of one process waited, every time. */
function waitsOf(
  log: readonly Section[],
  waiters: number,
  pending: ReadonlyMap<number, number>,
  endedAt: number,
): number[][] {
  const waits = Array.from({ length: waiters }, (): number[] => []);
  for (const { waiter, askedAt, enteredAt } of log) waits[waiter]!.push(enteredAt - askedAt);
  // Who is still waiting at the end has waited at least so long: leaving them out would flatter
  // those who starve.
  for (const [waiter, since] of pending) waits[waiter]!.push(endedAt - since);
  return waits;
}

function sharesOf(log: readonly Section[], waiters: number): number[] {
  const shares = new Array<number>(waiters).fill(0);
  for (const { waiter } of log) shares[waiter]! += 1;
  return shares;
}
