import { cycleMs } from "../measuring/cycle.js";
import { instant, pause } from "../measuring/instant.js";
import type { Measurement } from "../measuring/measurement.js";
import { median } from "../measuring/statistics.js";
import type { Measures, Scenario } from "../measuring/suite.js";
import type { Worker } from "../measuring/worker/worker-process.js";

const LEVELS = [1, 1_000, 100_000, 1_000_000] as const;
const TTL_MS = 6 * 3_600_000;
const LOOPS = 64;
const SLICES = 15;
/** Long enough for code and data to be in the caches for most of a slice. */
const SLICE_PART = 1 / 4;
const AT_A_TIME = 5_000;
// Data of idle resources must outlive the time that it takes to create and release them all.
const IDLE_MS_PER_RESOURCE = 0.12;
const MIN_IDLE_MS = 1_500;
// After idleMs the server still needs time to find what has expired.
const FORGET_MS = 60_000;
const LOOK_EVERY_MS = 200;

/** What a resource costs when there are many: while it is held, when it is idle, and after that. */
export const growth: Scenario = {
  id: "growth",
  title: "From one resource to a million",
  about: `A cycle's time, with ${LOOPS} at once, while another process holds so many other resources, beside one on an empty server; then in that process; the server's memory a resource.`,
  reach: "host",
  columns: [
    { key: "growth", title: "worst / at one", kind: "times" },
    ...LEVELS.map((level) => {
      return { key: `at${level}`, title: `at ${level.toLocaleString("en")}`, kind: "ms" } as const;
    }),
    { key: "atMost", title: "at the most", kind: "ms" },
    { key: "holder", title: "holder, worst / at one", kind: "times" },
    { key: "heldBytes", title: "held", kind: "bytes" },
    { key: "idleBytes", title: "idle", kind: "bytes" },
    { key: "leftBytes", title: "forgotten", kind: "bytes" },
    { key: "leftKeys", title: "keys left", kind: "count" },
  ],
  better: "less",
  rounds: 1,
  async measure(stage) {
    const most = Math.min(LEVELS.at(-1)!, stage.size);
    const idleMs = Math.ceil(Math.max(MIN_IDLE_MS, IDLE_MS_PER_RESOURCE * most));
    const terms = { ttlMs: TTL_MS, idleMs, pipelining: true };
    await using beside = await stage.another();
    const [holder, other] = (await stage.workers(2, terms)) as [Worker, Worker];
    const [few] = (await beside.workers(1, terms)) as [Worker];
    const { content } = stage;
    for (const worker of [holder, other, few]) await cycleMs(worker, LOOPS, stage.warmUpMs);
    const keysBefore = await content.keys();
    const bytesBefore = await content.bytes();
    const costs = await grow(stage, most, { holder, other, few });
    const heldBytes = ((await content.bytes()) - bytesBefore) / most;
    for (let left = most; left > 0; left -= AT_A_TIME) {
      await holder.call("letGo", Math.min(AT_A_TIME, left));
    }
    // Some may be forgotten already, so the bytes are divided by the number of keys that are left.
    const idleKeys = (await content.keys()) - keysBefore;
    const idleBytes = idleKeys > 0 ? ((await content.bytes()) - bytesBefore) / idleKeys : 0;
    await forgotten(stage, idleMs + FORGET_MS);
    const leftBytes = Math.max(0, (await content.bytes()) - bytesBefore) / most;
    const bytes = { heldBytes, idleBytes: Math.max(0, idleBytes), leftBytes };
    return { ...costs, ...bytes, leftKeys: await content.keys() };
  },
};

interface Crew {
  readonly holder: Worker;
  readonly other: Worker;
  /** On a server where nothing else is held. */
  readonly few: Worker;
}

/** Holds more and more, and measures a cycle at each level. */
async function grow(stage: Measurement, most: number, crew: Crew): Promise<Measures> {
  const levels = [...LEVELS.filter((level) => level < most), most];
  const measures: Record<string, number> = {};
  const costs: Costs[] = [];
  let held = 0;
  for (const level of levels) {
    while (held < level) held = await crew.holder.call("hold", Math.min(AT_A_TIME, level - held));
    const cost = await costsOf(crew, stage.seconds * 1e3 * SLICE_PART);
    measures[(LEVELS as readonly number[]).includes(level) ? `at${level}` : "atMost"] = cost.ms;
    costs.push(cost);
  }
  const worst = (of: "other" | "holder") =>
    Math.max(...costs.map((cost) => cost[of])) / costs[0]![of];
  return { growth: worst("other"), holder: worst("holder"), ...measures };
}

interface Costs {
  /** A cycle's time. */
  readonly ms: number;
  /** A cycle's time, also in the holder's process, relative to a cycle on an empty server. */
  readonly other: number;
  readonly holder: number;
}

/** Measures in alternation, because the machine's speed may change between two levels. */
async function costsOf({ holder, other, few }: Crew, forMs: number): Promise<Costs> {
  const slices: Costs[] = [];
  for (let i = 0; i < SLICES; i++) {
    const base = await cycleMs(few, LOOPS, forMs);
    const ms = await cycleMs(other, LOOPS, forMs);
    slices.push({ ms, other: ms / base, holder: (await cycleMs(holder, LOOPS, forMs)) / base });
  }
  const middle = (of: keyof Costs) => median(slices.map((slice) => slice[of]));
  return { ms: middle("ms"), other: middle("other"), holder: middle("holder") };
}

/** Waits until the server has no keys left, or the time is over. */
async function forgotten({ content }: Measurement, withinMs: number): Promise<void> {
  const deadline = instant() + withinMs;
  while ((await content.keys()) > 0 && instant() < deadline) await pause(LOOK_EVERY_MS);
}
