import assert from "node:assert/strict";
import { test } from "node:test";
import { playMany } from "./many.js";
import { mutants } from "./mutants.js";
import { planOf } from "./plan.js";
import { run } from "./run.js";
import { shrink } from "./shrink.js";

// The long tests play a million more.
const SCHEDULES = 8_000;

test("in eight thousand schedules no leases overlap, tokens rise, all clients finish, nothing is left", async (t) => {
  const startedAt = performance.now();
  const batch = { first: 1, end: 1 + SCHEDULES, step: 1, flaws: {} };
  const { schedules, grants, simulatedMs, broken } = await playMany(batch);
  const tookMs = performance.now() - startedAt;
  assert.equal(broken, null, `npm run simulate -- --seeds 1 --from ${broken?.seed}`);
  assert.equal(schedules, SCHEDULES);
  // Schedules without grants would keep every promise.
  assert.ok(grants > SCHEDULES, `${grants} grants in ${SCHEDULES} schedules`);
  t.diagnostic(
    `${schedules} schedules, ${grants} grants, ${Math.round(simulatedMs / tookMs)} simulated seconds a second`,
  );
});

for (const { name, flaws, seed } of mutants) {
  test(`seed ${seed} shows: ${name}`, () => {
    const plan = planOf(seed);
    const { violation } = run(plan, flaws);
    assert.notEqual(violation, null, "the flaw is not seen any more");
    assert.equal(run(plan, flaws).violation, violation, "a seed plays in the same way every time");
    assert.equal(run(plan).violation, null, "without the flaw nothing breaks");
  });
}

test("a schedule with a violation shrinks and still shows it", () => {
  const { flaws, seed } = mutants.find(({ name }) => name === "no quarantine")!;
  const plan = planOf(seed);
  const small = shrink(plan, flaws);
  assert.ok(small.plan.faults.length <= plan.faults.length);
  assert.equal(run(small.plan, flaws).violation, small.violation);
  assert.ok(small.plan.faults.length > 0, "without a fault there is nothing to forget");
});
