import { checkExclusion } from "../measuring/exclusion.js";
import { instant, pause } from "../measuring/instant.js";
import type { Measurement } from "../measuring/measurement.js";
import { Echo, timed } from "../measuring/round-trip.js";
import type { Section } from "../measuring/section-log.js";
import { percentile } from "../measuring/statistics.js";
import type { Measures, Runner, SlicedScenario } from "../measuring/suite.js";
import type { Worker } from "../measuring/worker/worker-process.js";
import { RESOURCE } from "../suites/terms.js";

const MAX_HAND_OVERS = 2_000;
const QUEUED_WITHIN_MS = 10_000;
const GOLDEN = 0.618034;

interface Holds {
  readonly id: string;
  readonly title: string;
  readonly shortestMs: number;
  readonly rangeMs: number;
  /** The least length of a slice, except in a quick run. */
  readonly seconds: number;
  readonly slicesARound: number;
}

const SHORT: Holds = {
  ...{ id: "hand-over", title: "Hand-over between two processes" },
  ...{ shortestMs: 2, rangeMs: 8, seconds: 0, slicesARound: 3 },
};
const LONG: Holds = {
  ...{ id: "long-holds", title: "Hand-over between two processes after 150 to 250 ms" },
  ...{ shortestMs: 150, rangeMs: 100, seconds: 10, slicesARound: 1 },
};

/** Compared with the least that two processes need to agree. */
export const handOver = handOverBeside("raw: pipe round trip", SHORT, (stage) => {
  const echo = stage.own(new Echo());
  return () => echo.roundTrip();
});

/** Compared with the least that a request to the server takes. */
export const servedHandOver = handOverBeside("raw: server round trip", SHORT, askServer);

/** Compared with one write: the least for a change that others can see. */
export const writtenHandOver = handOverBeside("raw: round trip of a write", SHORT, askServer);

/** Like writtenHandOver, with holds so long that servers, watches and processors go to sleep. */
export const longHolds = handOverBeside("raw: round trip of a write", LONG, askServer);

type RoundTrip = () => Promise<unknown>;

function askServer({ requiredServer }: Measurement): RoundTrip {
  return () => requiredServer.roundTrip();
}

/** One process holds and the other waits. Measures from the release to the grant. */
function handOverBeside(
  rawName: string,
  holds: Holds,
  roundTripOn: (stage: Measurement) => RoundTrip,
): SlicedScenario {
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
      of: ({ base50, base99, samples }) => ({ p50: base50!, p99: base99!, samples: samples! }),
    },
    slicesARound: holds.slicesARound,
    async open(stage): Promise<Runner<Pair[]>> {
      const workers = await stage.workers(2);
      const roundTrip = roundTripOn(stage);
      const run = (forMs: number) => handOvers(stage, workers, roundTrip, holds, forMs);
      return {
        warmUp: () => run(stage.warmUpMs),
        slice: () => run(secondsOf(holds, stage) * 1e3),
        summary: (slices) => summary(slices.flat()),
      };
    },
  };
}

/** The time of one hand-over, and of one round trip right before it. */
interface Pair {
  readonly delayMs: number;
  readonly rawMs: number;
}

async function handOvers(
  stage: Measurement,
  workers: readonly Worker[],
  roundTrip: RoundTrip,
  holds: Holds,
  forMs: number,
): Promise<Pair[]> {
  const until = instant() + forMs;
  const sections: Section[] = [];
  const pairs: Pair[] = [];
  let [holder, waiter] = workers as [Worker, Worker];
  let askedAt = instant();
  let enteredAt = await holder.call("acquire");
  for (let i = 0; i < MAX_HAND_OVERS && instant() < until; i++) {
    // Holds have different lengths, so that no contender polls in step with them. Round trips
    // follow the same pauses, because a machine that does not sleep answers faster.
    await pause(holdMs(holds, i));
    const rawMs = await timed(roundTrip);
    const askedNextAt = instant();
    const granted = waiter.call("acquire");
    await untilQueued(stage);
    await pause(holdMs(holds, i));
    const leftAt = await holder.call("release");
    sections.push({ waiter: i % 2, askedAt, enteredAt, leftAt });
    askedAt = askedNextAt;
    enteredAt = await granted;
    pairs.push({ delayMs: enteredAt - leftAt, rawMs });
    [holder, waiter] = [waiter, holder];
  }
  const leftAt = await holder.call("release");
  sections.push({ waiter: sections.length % 2, askedAt, enteredAt, leftAt });
  const sides = [0, 1].map((side) => sections.filter((section) => section.waiter === side));
  checkExclusion(stage.name, sides);
  return pairs;
}

/**
 * Waits until the waiter is in the queue: some contenders must start a program first, which takes
 * time.
 */
async function untilQueued({ server, contender }: Measurement): Promise<void> {
  const { traces } = contender;
  const content = server?.content;
  if (content?.inQueue === undefined || traces === undefined) return;
  const deadline = instant() + QUEUED_WITHIN_MS;
  while ((await content.inQueue(traces, RESOURCE)) < 2) {
    if (instant() > deadline)
      throw new Error(`no waiter was in the queue within ${QUEUED_WITHIN_MS} ms`);
  }
}

function holdMs({ shortestMs, rangeMs }: Holds, i: number): number {
  return shortestMs + rangeMs * ((i * GOLDEN) % 1);
}

function secondsOf(holds: Holds, { seconds, quick }: Measurement): number {
  return quick ? Math.max(seconds, holds.shortestMs / 100) : Math.max(seconds, holds.seconds);
}

function summary(pairs: readonly Pair[]): Measures {
  const delays = pairs.map(({ delayMs }) => delayMs);
  const raws = pairs.map(({ rawMs }) => rawMs);
  const p50 = percentile(delays, 0.5);
  const p99 = percentile(delays, 0.99);
  const base50 = percentile(raws, 0.5);
  const base99 = percentile(raws, 0.99);
  const multiples = { raw50: p50 / base50, raw99: p99 / base50 };
  return { p50, p99, ...multiples, samples: pairs.length, base50, base99 };
}
