import assert, { AssertionError } from "node:assert";
import { describe, test } from "node:test";
import { findLaw, groups } from "../index.js";
import type { WrongEngine } from "./altered.js";
import { wrongEngines } from "./index.js";
import { memoryHarness } from "./memory-harness.js";

// Each wrong engine is the memory engine with one defect, so the law that it names must fail on it.
// engines/memory/test/conformance shows that the same law passes on the correct engine.

function caught({ defect, law, overlay, store }: WrongEngine) {
  const title = `${law} catches an engine with this defect: ${defect}`;
  const run = async () => {
    const harness = memoryHarness(overlay, store);
    await assert.rejects(findLaw(law).run(harness), (error) => {
      assert(error instanceof AssertionError, `an assertion must catch it, not ${String(error)}`);
      return true;
    });
  };
  return { title, run };
}

// These laws run alone. L10 and L12 look at what keeps the process alive. The others give a wrong
// engine a few hundred milliseconds to be caught in. Work of neighbouring tests comes in bursts
// that are as long on a busy machine, and then the wrong engine escapes. L11.12 tests an engine
// that blocks the whole process, L23 tests engines that keep it busy for seconds.
const alone = ({ law }: WrongEngine) =>
  /^L1[02]\.|^L23\.|^(L4\.1|L5\.11|L5\.12|L11\.12)$/.test(law);

for (const wrong of wrongEngines.filter(alone)) {
  const { title, run } = caught(wrong);
  test(title, run);
}

describe("side by side, as most of them only wait", { concurrency: 8 }, () => {
  for (const wrong of wrongEngines.filter((one) => !alone(one))) {
    const { title, run } = caught(wrong);
    test(title, run);
  }
});

test("every law from L1 to L23 has a wrong engine that it catches", () => {
  const caught = new Set(wrongEngines.map(({ law }) => law.split(".")[0]));
  const without = groups.map((group) => group.id).filter((id) => !caught.has(id));
  // L0 is about harnesses. L15 catches the same defects as L1 and L2, but only by chance.
  assert.deepEqual(without, ["L0", "L15"]);
});
