import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../testing/index.js";
import { flakyWire } from "./flaky-wire.fixture.js";
import { Network } from "./network.fixture.js";
import { runSchedule } from "./schedule.fixture.js";

// Random schedules: three clients behind a network that drops, delays, loses and repeats requests,
// on a clock that pauses. schedules.long.test.ts runs a hundred times as many operations.

const SEEDS = 150;
const STEPS = 60;

test("the simulated network acts on arrival, and counts validity from the send", async () => {
  const clock = new ManualClock();
  const network = new Network(clock, () => 2, false);
  const call = { startedAt: clock.now(), timeoutMs: 100, order: 1 };
  const asked = network.send(false, call, async ({ startedAt }) => ({
    since: startedAt,
    arrivedAt: startedAt,
  }));
  await clock.advance(5);
  const answer = await asked;
  assert.equal(answer.since, call.startedAt);
  assert.equal(answer.arrivedAt, call.startedAt + 2);
});

for (let block = 0; block < 5; block++) {
  const first = 1 + (block * SEEDS) / 5;
  const last = ((block + 1) * SEEDS) / 5;
  test(`exclusion holds and nothing is left, in random schedules ${first} to ${last}`, async () => {
    for (let seed = first; seed <= last; seed++) {
      await runSchedule(seed, STEPS, (clock, random) => new Network(clock, random, seed % 2 === 0));
    }
  });
}

test("exclusion holds, tokens rise and nothing is left, over 8,000 operations on flaky engines", async () => {
  for (let seed = 1; seed <= 40; seed++) await runSchedule(seed, 200, flakyWire);
});

test("exclusion holds when each client holds many leases that are renewed together", async () => {
  for (let seed = 1; seed <= 30; seed++) {
    await runSchedule(seed, 150, flakyWire, 12);
    await runSchedule(seed, 150, (clock, random) => new Network(clock, random, seed % 2 === 0), 12);
  }
});

test("a semaphore has at most as many holders as permits when crowds want it", async () => {
  for (let seed = 1; seed <= 20; seed++) {
    await runSchedule(seed, 60, flakyWire, 1, true);
    await runSchedule(
      seed,
      60,
      (clock, random) => new Network(clock, random, seed % 2 === 0),
      1,
      true,
    );
  }
});

test("a seed always gives the same schedule", async () => {
  const drawn = async () => {
    const numbers: number[] = [];
    await runSchedule(7, 200, (clock, random, seed) => {
      const noted = (below: number) => {
        const number = random(below);
        numbers.push(clock.now(), number);
        return number;
      };
      return flakyWire(clock, noted, seed);
    });
    return numbers;
  };
  const first = await drawn();
  assert.ok(first.length > 100);
  assert.deepEqual(await drawn(), first);
});
