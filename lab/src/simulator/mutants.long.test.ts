import assert from "node:assert/strict";
import { test } from "node:test";
import { playMany } from "./many.js";
import { mutants } from "./mutants.js";

const MOST_SCHEDULES = 100_000;

for (const { name, flaws, hunt } of mutants) {
  test(`the simulator finds by itself: ${name}`, { timeout: 10 * 60_000 }, async (t) => {
    const { first, step } = hunt;
    const end = first + MOST_SCHEDULES * step;
    const { broken, schedules } = await playMany({ first, step, end, flaws });
    assert.notEqual(broken, null);
    t.diagnostic(`seed ${broken?.seed} after ${schedules} schedules: ${broken?.violation}`);
  });
}
