import assert from "node:assert/strict";
import { test } from "node:test";
import { playMany } from "./many.js";

test("a million more schedules show no violation", { timeout: 55 * 60_000 }, async (t) => {
  // Continues where simulator.test.ts ends.
  const batch = { first: 8_001, end: 1_008_001, step: 1, flaws: {} };
  const { broken, schedules, grants } = await playMany(batch);
  assert.equal(broken, null, `npm run simulate -- --seeds 1 --from ${broken?.seed}`);
  t.diagnostic(`${schedules} schedules, ${grants} grants`);
});
