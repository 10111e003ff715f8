import { cycleMs } from "../measuring/cycle.js";
import { pause } from "../measuring/instant.js";
import { median } from "../measuring/statistics.js";
import type { Scenario } from "../measuring/suite.js";
import type { Worker } from "../measuring/worker/worker-process.js";

const MOST = 100_000;
const PAIRS = 9;
const SETTLE_MS = 20_000;

/** What a cycle costs in a table that is full of other grants. */
export const rows: Scenario = {
  id: "rows",
  title: "From one row to a hundred thousand",
  about:
    "The time of one waiter's cycle in an empty table, and in one where so many others are held.",
  reach: "host",
  columns: [
    { key: "growth", title: "full / empty", kind: "times" },
    { key: "empty", title: "empty", kind: "ms" },
    { key: "full", title: "full", kind: "ms" },
    { key: "rows", title: "rows", kind: "count" },
  ],
  better: "less",
  rounds: 1,
  async measure(full) {
    const { plant } = full.requiredServer;
    if (plant === undefined) throw new Error("this server has no rows to plant");
    const most = Math.min(MOST, full.size);
    await plant(most);
    await using empty = await full.another();
    const [inFull] = (await full.workers(1)) as [Worker];
    const [inEmpty] = (await empty.workers(1)) as [Worker];
    // The server is still busy with the new rows: MariaDB writes its pages for a while.
    await pause(SETTLE_MS);
    for (const worker of [inEmpty, inFull]) await cycleMs(worker, 1, full.warmUpMs);
    // In alternation, because a machine has fast and slow minutes, and neighbouring slices share
    // them.
    const pairs: { readonly empty: number; readonly full: number }[] = [];
    const sliceMs = (full.seconds * 1e3) / PAIRS;
    for (let i = 0; i < PAIRS; i++) {
      pairs.push({
        empty: await cycleMs(inEmpty, 1, sliceMs),
        full: await cycleMs(inFull, 1, sliceMs),
      });
    }
    return {
      growth: median(pairs.map((pair) => pair.full / pair.empty)),
      empty: median(pairs.map((pair) => pair.empty)),
      full: median(pairs.map((pair) => pair.full)),
      rows: most,
    };
  },
};
