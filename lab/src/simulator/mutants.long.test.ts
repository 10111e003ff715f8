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

test("a million more schedules show no violation", { timeout: 20 * 60_000 }, async (t) => {
  // Continues where simulator.test.ts ends.
  const batch = { first: 8_001, end: 1_008_001, step: 1, flaws: {} };
  const { broken, schedules, grants } = await playMany(batch);
  assert.equal(broken, null, `npm run simulate -- --seeds 1 --from ${broken?.seed}`);
  t.diagnostic(`${schedules} schedules, ${grants} grants`);
});
