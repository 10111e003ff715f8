import type { Worker } from "./crew.js";
import { instant } from "./instant.js";
import { unpack } from "./section-log.js";

/** The time of one cycle while so many loops of a worker acquire and release, each a resource of its own. */
export async function cycleMs(worker: Worker, waiters: number, forMs: number): Promise<number> {
  const from = instant();
  const order = { waiters, apart: true, from, until: from + forMs };
  const { sections } = await worker.call("contend", order);
  const log = unpack(sections);
  return (Math.max(...log.map(({ leftAt }) => leftAt)) - from) / log.length;
}
