import assert from "node:assert/strict";
import { instant, pause } from "../measuring/instant.js";
import { Measurement } from "../measuring/measurement.js";
import { runSuite } from "../measuring/run-suite.js";
import type { Suite } from "../measuring/suite.js";
import { RESOURCE } from "../suites/terms.js";

const REST_MS = 300;
export const BLINK = { seconds: 0.2, size: 50, quick: true, rounds: 1, onProgress: () => {} };

/**
 * Checks that every scenario measures on a real server and has the numbers that requirements need.
 */
export async function checkScenarios(
  suite: Suite,
  ours: string,
  others: readonly string[],
): Promise<void> {
  const contenders = [ours, ...others];
  const ids = suite.scenarios.map(({ id }) => id);
  await inTurns(4, ids, async (id) => {
    const { tables } = await runSuite(suite, { ...BLINK, scenarios: [id], contenders });
    const { columns, rows } = tables[0]!;
    const measures = rows.find(({ contender }) => contender === ours)!.measures!;
    for (const { key } of columns.filter(({ key }) => key !== "gaveUp")) {
      // On a very busy machine no waiter is served in so short a time. Its wait is then NaN.
      assert.equal(typeof measures[key], "number", `${id}: ours has ${key}`);
    }
    assert.ok(measures[columns[0]!.key]! >= 0, `${id}: ours has a headline`);
    for (const { why } of rows) assert.doesNotMatch(why ?? "", /^failed|^disqualified/, id);
    const wanted = suite.requirements.filter(({ scenario }) => scenario === id);
    assert.ok(wanted.length > 0, `${id} has a requirement`);
    for (const { column } of wanted) {
      const key = column ?? columns[0]!.key;
      assert.ok(
        columns.some((known) => known.key === key),
        `${id}: there is a column ${key}`,
      );
    }
  });
}

/**
 * Checks that each contender's waiters are in the queue that it names, and that it uses our clock.
 */
export async function checkQueues(suite: Suite): Promise<void> {
  const waiting = suite.contenders.filter(({ sitsOut }) => sitsOut?.["hand-over"] === undefined);
  await inTurns(2, waiting, async (contender) => {
    await using stage = await Measurement.open(suite, contender, BLINK);
    const { content } = stage;
    const inQueue = () => content.inQueue!(contender.traces!, RESOURCE);
    const [holder, waiter] = await stage.workers(2);
    const askedAt = instant();
    const enteredAt = await holder!.call("acquire");
    assert.equal(await inQueue(), 1, `${contender.name} holds`);
    const granted = waiter!.call("acquire");
    while ((await inQueue()) < 2);
    const releasedAt = instant();
    const leftAt = await holder!.call("release");
    const instants = [askedAt, enteredAt, releasedAt, leftAt, await granted, instant()];
    assert.deepEqual(instants.toSorted(byTime), instants, `${contender.name}: ${instants}`);
    await waiter!.call("release");
    assert.equal(await inQueue(), 0, `${contender.name} leaves nothing`);
  });
}

/** Runs a few at the same time, because a short run mostly waits for processes to start. */
export async function inTurns<T>(
  atOnce: number,
  all: readonly T[],
  work: (one: T) => Promise<void>,
): Promise<void> {
  const left = [...all];
  const loop = async () => {
    for (let one = left.shift(); one !== undefined; one = left.shift()) await work(one);
  };
  await Promise.all(Array.from({ length: atOnce }, loop));
}

function byTime(a: number, b: number): number {
  return a - b;
}

/** Runs every scenario briefly and checks that every number that a requirement needs is there. */
export async function measuresAll(suite: Suite, contenders: readonly string[]): Promise<void> {
  const { tables, requirements } = await runSuite(suite, { ...BLINK, scenarios: null, contenders });
  for (const { scenario, columns, rows } of tables) {
    for (const id of contenders) {
      const { measures, why } = rows.find(({ contender }) => contender === id)!;
      const sitsOut = suite.contenders.find((candidate) => candidate.id === id)!.sitsOut;
      if (sitsOut?.[scenario] !== undefined) continue;
      assert.equal(why, null, `${scenario}: ${id}`);
      for (const { key } of columns.filter(({ key }) => key !== "gaveUp")) {
        // On a very busy machine no waiter is served in so short a time. Its wait is then NaN.
        assert.equal(typeof measures![key], "number", `${scenario}: ${id} has ${key}`);
      }
    }
  }
  for (const { title, got } of requirements) assert.equal(typeof got, "number", title);
}

/** The server's count of statements for one acquire and one release, after a first of each. */
export async function statementsOf(suite: Suite, id: string): Promise<[number, number]> {
  const contender = suite.contenders.find((candidate) => candidate.id === id)!;
  await using stage = await Measurement.open(suite, contender, BLINK);
  const [worker] = await stage.workers(1);
  await worker!.call("acquire");
  await worker!.call("release");
  const before = await callsAtRest(stage);
  await worker!.call("acquire");
  const between = (await stage.calls())!;
  await worker!.call("release");
  return [between - before, (await stage.calls())! - between];
}

/** Waits until the count is stable: a first use may open connections, which send statements too. */
async function callsAtRest(stage: Measurement): Promise<number> {
  let last = -1;
  for (let tries = 0; tries < 50; tries++) {
    const calls = (await stage.calls())!;
    if (calls === last) return calls;
    last = calls;
    await pause(REST_MS);
  }
  throw new Error("the server is asked something all the time, and nobody acquires");
}
