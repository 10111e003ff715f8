import { checkExclusion } from "./exclusion.js";
import { instant } from "./instant.js";
import { type Section, unpack } from "./section-log.js";
import { jain } from "./statistics.js";
import { stolenMs } from "./steal.js";
import type { Worker } from "./worker/worker-process.js";

// By then every worker has its order.
const START_MS = 5;

export interface Loops {
  readonly waiters: number;
  /** Each waiter wants a resource of its own; otherwise all want the same. */
  readonly apart: boolean;
  /** Nothing counts before: full pipelines are measured, not how they fill. */
  readonly leadInMs: number;
  readonly forMs: number;
}

/** What loops showed in one stretch of time. */
export interface LoopSlice {
  readonly rate: number;
  /** How long each waiter of each process waited, every time. */
  readonly waits: readonly (readonly number[])[];
  readonly jain: number;
  readonly jainProcesses: number;
  readonly gaveUp: number;
  /** Of everything, the lead-in included: what all processes used, and how many turns they took. */
  readonly cpuMs: number;
  readonly turns: number;
  /** What the host took from this machine meanwhile. */
  readonly stolenMs: number;
}

/** Waiters of some processes that take turns for a while, all from the same instant on. */
export async function runLoops(
  name: string,
  workers: readonly Worker[],
  { waiters, apart, leadInMs, forMs }: Loops,
): Promise<LoopSlice> {
  const stolenBefore = stolenMs();
  const from = instant() + START_MS;
  const countFrom = from + leadInMs;
  const order = { waiters, apart, from, until: countFrom + forMs };
  const reports = await Promise.all(workers.map((worker) => worker.call("contend", order)));
  const stolen = stolenMs() - stolenBefore;
  const logs = reports.map(({ sections }) => unpack(sections));
  if (!apart) checkExclusion(name, logs);

  const endedAt = Math.min(...reports.map((report) => report.endedAt));
  const counted = logs.map((log) =>
    log.filter(({ enteredAt }) => enteredAt >= countFrom && enteredAt < endedAt),
  );
  // Who asked in time and was served a little late has waited, too.
  const waited = logs.map((log) =>
    log.filter(({ askedAt, enteredAt }) => enteredAt >= countFrom && askedAt < endedAt),
  );
  const served = counted.map((log) => log.length);
  return {
    rate: sum(served) / ((endedAt - countFrom) / 1e3),
    waits: reports.flatMap(({ pending }, i) => waitsOf(waited[i]!, waiters, pending, endedAt)),
    jain: jain(counted.flatMap((log) => sharesOf(log, waiters))),
    jainProcesses: jain(served),
    gaveUp: sum(reports.map((report) => report.gaveUp)),
    cpuMs: sum(reports.map((report) => report.cpuMs)),
    turns: sum(logs.map((log) => log.length)),
    stolenMs: stolen,
  };
}

export function sum(values: readonly number[]): number {
  return values.reduce((a, b) => a + b, 0);
}

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
