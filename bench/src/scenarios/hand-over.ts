import { checkExclusion } from "../exclusion.js";
import { instant, pause } from "../instant.js";
import { type Pace, samplePipe, sampleRoundTrips } from "../round-trip.js";
import type { Section } from "../section-log.js";
import type { Stage } from "../stage.js";
import { percentile } from "../statistics.js";
import type { Measures, Scenario } from "../suite.js";
import { RESOURCE } from "../terms.js";

const MAX_HAND_OVERS = 2_000;
const IN_LINE_MS = 10_000;
const GOLDEN = 0.618034;

interface Holds {
  readonly id: string;
  readonly title: string;
  readonly shortestMs: number;
  readonly rangeMs: number;
  /** Rows last so long at least, but for a quick look. */
  readonly seconds: number;
}

const SHORT: Holds = {
  ...{ id: "hand-over", title: "Hand-over between two processes" },
  ...{ shortestMs: 2, rangeMs: 8, seconds: 0 },
};
const LONG: Holds = {
  ...{ id: "long-holds", title: "Hand-over between two processes after 150 to 250 ms" },
  ...{ shortestMs: 150, rangeMs: 100, seconds: 8 },
};

/** Beside the least that two processes need to agree. */
export const handOver = handOverBeside("raw: pipe round trip", SHORT, (_, pace) =>
  samplePipe(pace),
);

/** Beside the least that it takes to ask the server. */
export const servedHandOver = handOverBeside("raw: server round trip", SHORT, askServer);

/** Beside one write: what a change that others can see takes at least. */
export const writtenHandOver = handOverBeside("raw: round trip of a write", SHORT, askServer);

/** The same with holds after which servers, watches and processors have gone to sleep. */
export const longHolds = handOverBeside("raw: round trip of a write", LONG, askServer);

function askServer({ ground }: Stage, pace: Pace): Promise<number[]> {
  return sampleRoundTrips(() => ground.roundTrip(), pace);
}

/** One process holds, the other waits; from the holder's release to the other's grant. */
function handOverBeside(
  rawName: string,
  holds: Holds,
  sampleRaw: (stage: Stage, pace: Pace) => Promise<number[]>,
): Scenario {
  return {
    id: holds.id,
    title: holds.title,
    about: "From the start of one process's release to the grant in another that waits.",
    reach: "host",
    columns: [
      { key: "p50", title: "p50", kind: "ms" },
      { key: "p99", title: "p99", kind: "ms" },
      { key: "raw50", title: "p50 / raw", kind: "times" },
      { key: "raw99", title: "p99 / raw", kind: "times" },
      { key: "samples", title: "samples", kind: "count" },
    ],
    better: "less",
    raw: {
      name: rawName,
      async measure(stage) {
        const { warmUpMs } = stage;
        const seconds = secondsOf(holds, stage);
        const pauseMs = (i: number) => holdMs(holds, i);
        const pace = { seconds, warmUpMs, most: MAX_HAND_OVERS, pauseMs };
        return summary(await sampleRaw(stage, pace), null);
      },
    },
    async measure(stage, raw) {
      return summary(await handOvers(stage, holds), raw);
    },
  };
}

async function handOvers(stage: Stage, holds: Holds): Promise<number[]> {
  const [first, second] = (await stage.workers(2)) as [Worker, Worker];
  const warmAt = instant() + stage.warmUpMs;
  const until = warmAt + secondsOf(holds, stage) * 1e3;
  const sections: Section[] = [];
  const delays: number[] = [];
  let [holder, waiter] = [first, second];
  let askedAt = instant();
  let enteredAt = await holder.call("acquire");
  for (let i = 0; i < MAX_HAND_OVERS && instant() < until; i++) {
    const askedNextAt = instant();
    const granted = waiter.call("acquire");
    await standsInLine(stage);
    // Holds of different lengths, so that no contender's polling falls into step with them.
    await pause(holdMs(holds, i));
    const leftAt = await holder.call("release");
    sections.push({ waiter: i % 2, askedAt, enteredAt, leftAt });
    askedAt = askedNextAt;
    enteredAt = await granted;
    if (enteredAt >= warmAt) delays.push(enteredAt - leftAt);
    [holder, waiter] = [waiter, holder];
  }
  const leftAt = await holder.call("release");
  sections.push({ waiter: sections.length % 2, askedAt, enteredAt, leftAt });
  const sides = [0, 1].map((side) => sections.filter((section) => section.waiter === side));
  checkExclusion(stage.name, sides);
  return delays;
}

/** Some start a program to ask, and none should pay for coming late to the line. */
async function standsInLine({ server, contender }: Stage): Promise<void> {
  const { traces } = contender!;
  const content = server?.content;
  if (content?.inLine === undefined || traces === undefined) return;
  const deadline = instant() + IN_LINE_MS;
  while ((await content.inLine(traces, RESOURCE)) < 2) {
    if (instant() > deadline) throw new Error(`nobody stood in line within ${IN_LINE_MS} ms`);
  }
}

type Worker = Awaited<ReturnType<Stage["workers"]>>[number];

function holdMs({ shortestMs, rangeMs }: Holds, i: number): number {
  return shortestMs + rangeMs * ((i * GOLDEN) % 1);
}

function secondsOf(holds: Holds, { seconds, quick }: Stage): number {
  return quick ? Math.max(seconds, holds.shortestMs / 100) : Math.max(seconds, holds.seconds);
}

function summary(delays: readonly number[], raw: Measures | null): Measures {
  const p50 = percentile(delays, 0.5);
  const p99 = percentile(delays, 0.99);
  const base = raw?.p50;
  const multiples = base === undefined ? {} : { raw50: p50 / base, raw99: p99 / base };
  return { p50, p99, ...multiples, samples: delays.length };
}
