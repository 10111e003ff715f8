import { instant } from "./instant.js";
import { unpack } from "./section-log.js";
import type { Worker } from "./worker/worker-process.js";

/** The time of one cycle while so many loops of a worker acquire and release, each a resource of its own. */
export async function cycleMs(worker: Worker, waiters: number, forMs: number): Promise<number> {
  const from = instant();
  const order = { waiters, apart: true, from, until: from + forMs };
  const { sections } = await worker.call("contend", order);
  const log = unpack(sections);
  // Sections are written down as they are left. There may be more than a call can have arguments.
  const lastLeftAt = log.at(-1)?.leftAt ?? Number.NaN;
  return (lastLeftAt - from) / log.length;
}
