import { type Extent, Measurement } from "./measurement.js";
import type { Measures, Runner, SlicedScenario, Suite, WholeScenario } from "./suite.js";
import { medians, type Trials } from "./trials.js";

const QUICK_SLICES = 2;
const QUICK_TRIES = 20;

type OnTurn = (who: string) => void;

/** Measures each contender alone, round after round. The row shows the medians. */
export async function takeRounds(
  suite: Suite,
  scenario: WholeScenario,
  all: readonly Trials[],
  rounds: number,
  extent: Extent,
  onTurn: OnTurn,
): Promise<void> {
  const shown = all.map((): Measures[] => []);
  for (let round = 0; round < rounds; round++) {
    for (const [i, trials] of all.entries()) {
      onTurn(trials.contender.name);
      const measures = await trials.attempt(async () => {
        await using stage = await Measurement.open(suite, trials.contender, extent);
        return await scenario.measure(stage);
      });
      if (measures !== null) shown[i]!.push(measures);
    }
  }
  for (const [i, trials] of all.entries()) trials.conclude(shown[i]!, medians(shown[i]!));
}

/** A contender that stays open for a round, and the results of its slices. */
interface Lane {
  readonly trials: Trials;
  readonly stage: Measurement;
  readonly runner: Runner;
  readonly slices: unknown[];
}

/** The results of one contender's rounds. */
interface Shown {
  readonly runner: Runner;
  readonly rounds: unknown[][];
}

/**
 * Opens and warms up all contenders, then gives each a short slice in turn, again and again. A slow
 * phase of the machine lasts longer than a slice, so it slows down all contenders equally. Each
 * round has its own processes and servers: how the system places two processes on two cores is a
 * matter of luck, and does not change while they live.
 */
export async function takeSlices(
  suite: Suite,
  scenario: SlicedScenario,
  all: readonly Trials[],
  rounds: number,
  extent: Extent,
  onTurn: OnTurn,
): Promise<void> {
  const count = Math.min(scenario.slicesARound, extent.quick ? QUICK_SLICES : Infinity);
  const shown = new Map<Trials, Shown>();
  for (let round = 0; round < rounds; round++) {
    const lanes: Lane[] = [];
    try {
      for (const trials of all) {
        onTurn(trials.contender.name);
        const lane = await trials.attempt(() => openLane(suite, scenario, trials, extent));
        if (lane !== null) lanes.push(lane);
      }
      onTurn("all in turn");
      const take = (runner: Runner) =>
        extent.quick ? sliceWithATurn(runner, scenario.columns[0].key) : runner.slice();
      for (let i = 0; i < count && lanes.length > 0; i++) {
        await takeSlice(lanes, round * count + i, take);
      }
    } finally {
      const open = lanes.filter(stillThere);
      await Promise.all(open.map(({ stage }) => stage[Symbol.asyncDispose]()));
    }
    for (const { trials, runner, slices } of lanes) {
      const earlier = shown.get(trials)?.rounds ?? [];
      shown.set(trials, { runner, rounds: [...earlier, slices] });
    }
  }
  for (const [trials, { runner, rounds: seen }] of shown) {
    if (trials.why === null) trials.conclude(seen.map(runner.summary), runner.summary(seen.flat()));
  }
}

async function openLane(
  suite: Suite,
  scenario: SlicedScenario,
  trials: Trials,
  extent: Extent,
): Promise<Lane> {
  const stage = await Measurement.open(suite, trials.contender, extent);
  try {
    const runner = await scenario.open(stage);
    await runner.warmUp();
    return { trials, stage, runner, slices: [] };
  } catch (error) {
    await stage[Symbol.asyncDispose]();
    throw error;
  }
}

/** Takes one slice of every contender. The order changes from slice to slice. */
async function takeSlice(
  lanes: readonly Lane[],
  turn: number,
  take: (runner: Runner) => Promise<unknown>,
): Promise<void> {
  const at = turn % lanes.length;
  const others = [...lanes.slice(at + 1), ...lanes.slice(0, at)];
  const order = [lanes[at]!, ...(turn % 2 === 0 ? others : others.reverse())];
  for (const { trials, stage, runner, slices } of order.filter(stillThere)) {
    const slice = await trials.attempt(() => take(runner));
    // What a failed contender left behind must not disturb the others.
    if (slice === null) await stage[Symbol.asyncDispose]();
    else slices.push(slice);
  }
}

/**
 * On a busy machine a quick slice may be too short for a single turn. A quick run only shows that
 * everything works, so it repeats such a slice. In a real run a slice without a turn is a result.
 */
async function sliceWithATurn(runner: Runner, headline: string): Promise<unknown> {
  let slice = await runner.slice();
  for (let tries = 1; tries < QUICK_TRIES && !(runner.summary([slice])[headline]! > 0); tries++) {
    slice = await runner.slice();
  }
  return slice;
}

function stillThere({ trials }: Lane): boolean {
  return trials.why === null;
}
