import { randomInt } from "node:crypto";
import { test } from "node:test";
import { flakyWire } from "./flaky-wire.fixture.js";
import { runSchedule } from "./schedule.fixture.js";

const OPERATIONS = 200_000;
const STEPS = 500;
const SCHEDULES = OPERATIONS / STEPS;

// HOLDFAST_SEED=<the number in a failure message> runs that one schedule again.
const given = process.env.HOLDFAST_SEED;
const first = given === undefined ? randomInt(2 ** 31) : Number(given);
const count = given === undefined ? SCHEDULES : 1;

test(`exclusion holds, tokens rise and nothing is left, over ${count * STEPS} operations on flaky engines`, async (t) => {
  t.diagnostic(`schedules from seed ${first}`);
  for (let seed = first; seed < first + count; seed++) {
    try {
      // Every second schedule has so many resources that leases are renewed together.
      await runSchedule(seed, STEPS, flakyWire, seed % 2 === 0 ? 2 : 12);
    } catch (error) {
      throw new Error(`HOLDFAST_SEED=${seed} plays it again: ${(error as Error).message}`, {
        cause: error,
      });
    }
  }
});
