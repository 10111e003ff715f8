import { checkExclusion } from "./exclusion.js";
import { instant } from "./instant.js";
import { type Section, unpack } from "./section-log.js";
import { jain } from "./statistics.js";
import { stolenMs } from "./steal.js";
import type { Worker } from "./worker/worker-process.js";

// After this time every worker has received its order.
const START_MS = 5;

export interface Loops {
  readonly waiters: number;
  /** Whether each waiter wants its own resource; otherwise all want the same. */
  readonly apart: boolean;
  /** Sections before this time do not count: we measure full pipelines, not how they fill. */
  readonly leadInMs: number;
  readonly forMs: number;
}

/** The results of loops in one slice of time. */
export interface LoopSlice {
  readonly rate: number;
  /** Every waiting time, grouped by waiter. */
  readonly waits: readonly (readonly number[])[];
  readonly jain: number;
  readonly jainProcesses: number;
  readonly gaveUp: number;
  /** CPU time and turns of all processes, the lead-in included. */
  readonly cpuMs: number;
  readonly turns: number;
  /** CPU time that the host took from this machine meanwhile. */
  readonly stolenMs: number;
}

/** Runs the waiters of several processes for a while. All start at the same instant. */
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
  // A waiter that asked in time and was served a little late has waited too.
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
  // A waiter that is not served at the end has waited at least this long. Without it, a lock that
  // starves waiters would look good.
  for (const [waiter, since] of pending) waits[waiter]!.push(endedAt - since);
  return waits;
}

function sharesOf(log: readonly Section[], waiters: number): number[] {
  const shares = new Array<number>(waiters).fill(0);
  for (const { waiter } of log) shares[waiter]! += 1;
  return shares;
}
