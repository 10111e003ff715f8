import { instant } from "./instant.js";
import { unpack } from "./section-log.js";
import type { Worker } from "./worker/worker-process.js";

/** The time of one cycle while a worker runs this many loops, each on its own resource. */
export async function cycleMs(worker: Worker, waiters: number, forMs: number): Promise<number> {
  const from = instant();
  const order = { waiters, apart: true, from, until: from + forMs };
  const { sections } = await worker.call("contend", order);
  const log = unpack(sections);
  // The log is in the order of leaving, so its last entry is the latest. Math.max would take too
  // many arguments.
  const lastLeftAt = log.at(-1)?.leftAt ?? Number.NaN;
  return (lastLeftAt - from) / log.length;
}
