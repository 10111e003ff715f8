import { instant, pause } from "../instant.js";
import { unpack } from "../section-log.js";
import type { Stage } from "../stage.js";
import { median } from "../statistics.js";
import type { Scenario } from "../suite.js";

const MOST = 100_000;
const SLICES = 5;
const SETTLE_MS = 5_000;

/** What a cycle costs in a table that is full of other people's grants. */
export const rows: Scenario = {
  id: "rows",
  title: "From one row to a hundred thousand",
  about: "The time of one waiter's cycle in an empty table, and while so many others are held.",
  reach: "host",
  columns: [
    { key: "growth", title: "full / empty", kind: "times" },
    { key: "empty", title: "empty", kind: "ms" },
    { key: "full", title: "full", kind: "ms" },
    { key: "rows", title: "rows", kind: "count" },
  ],
  better: "less",
  rounds: 1,
  async measure(stage) {
    const { plant } = stage.ground;
    if (plant === undefined) throw new Error("this server has no rows to plant");
    const [worker] = (await stage.workers(1)) as [Worker];
    await cycles(worker, stage.warmUpMs);
    const most = Math.min(MOST, stage.size);
    const empty = await cycles(worker, stage.seconds * 1e3);
    await plant(most);
    // The server is still busy with what it was given.
    await pause(SETTLE_MS);
    await cycles(worker, stage.warmUpMs);
    const full = await cycles(worker, stage.seconds * 1e3);
    return { growth: full / empty, empty, full, rows: most };
  },
};

type Worker = Awaited<ReturnType<Stage["workers"]>>[number];

/** The median of a few slices, so that one hiccup of the machine does not count. */
async function cycles(worker: Worker, forMs: number): Promise<number> {
  const times: number[] = [];
  for (let slice = 0; slice < SLICES; slice++) {
    const from = instant();
    const order = { waiters: 1, apart: true, from, until: from + forMs / SLICES };
    const { sections } = await worker.call("contend", order);
    const log = unpack(sections);
    times.push((Math.max(...log.map(({ leftAt }) => leftAt)) - from) / log.length);
  }
  return median(times);
}
