import assert from "node:assert/strict";
import { test } from "node:test";
import { runSuite } from "./run-suite.js";
import { leastBy } from "./statistics.js";
import { stolenMs } from "./steal.js";
import type { Contender, SlicedScenario, Suite } from "./suite.js";

const OPTIONS = {
  ...{ seconds: 0.1, size: Infinity, quick: false, scenarios: null, contenders: null },
  onProgress: () => {},
};

/** Each slice returns how many slices were taken so far. */
function record(fails: (turn: number) => boolean) {
  const turns: string[] = [];
  const opened: string[] = [];
  const scenario: SlicedScenario = {
    ...{ id: "turns", title: "Turns", about: "", reach: "process", better: "more" },
    columns: [{ key: "turn", title: "turn", kind: "count" }],
    slicesARound: 3,
    async open({ name }) {
      opened.push(name);
      return {
        warmUp: async () => {},
        async slice() {
          if (name === "b" && fails(turns.length)) throw new Error("enough");
          return turns.push(name);
        },
        summary: (slices) => ({ turn: Math.max(...(slices as number[])) }),
      };
    },
  };
  const contender = (id: string): Contender => {
    const open = () => Promise.reject(new Error("nobody opens it"));
    return { id, name: id, ours: false, reach: "process", open };
  };
  const suite: Suite = {
    ...{ name: "turns", module: import.meta.url, reference: "a", requirements: [] },
    contenders: ["a", "b", "c"].map(contender),
    scenarios: [scenario],
  };
  return { turns, opened, suite };
}

test("every contender has one slice before any has a second, and each comes first once", async () => {
  const { turns, opened, suite } = record(() => false);
  const { tables } = await runSuite(suite, { ...OPTIONS, rounds: 2 });
  assert.deepEqual(opened, ["a", "b", "c", "a", "b", "c"], "each round has processes of its own");
  const rounds = Array.from({ length: 6 }, (_, i) => turns.slice(3 * i, 3 * i + 3));
  for (const round of rounds) assert.deepEqual(round.toSorted(), ["a", "b", "c"]);
  assert.deepEqual(new Set(rounds.map(([first]) => first)), new Set(["a", "b", "c"]));
  const { rows } = tables[0]!;
  assert.equal(Math.max(...rows.map(({ measures }) => measures!.turn!)), 18, "all slices together");
  assert.ok(
    rows.every(({ spread }) => spread! > 0),
    "and apart by rounds",
  );
});

test("a contender that fails in a slice takes no further part, and the others continue", async () => {
  const { turns, opened, suite } = record((turn) => turn > 2);
  const { tables } = await runSuite(suite, { ...OPTIONS, rounds: 2 });
  assert.equal(turns.filter((name) => name === "b").length, 1);
  assert.equal(turns.filter((name) => name !== "b").length, 12);
  assert.deepEqual(opened, ["a", "b", "c", "a", "c"]);
  const [, row] = tables[0]!.rows;
  assert.deepEqual([row!.measures, row!.why], [null, "failed: enough"]);
});

test("progress counts every turn, and no more than there are", async () => {
  const { suite } = record(() => false);
  const seen: string[] = [];
  const onProgress = (_: string, done: number, all: number) => {
    seen.push(`${done} of ${all}`);
  };
  await runSuite(suite, { ...OPTIONS, rounds: 2, onProgress });
  assert.deepEqual([seen[0], seen.at(-1), seen.length], ["0 of 8", "7 of 8", 8]);
});

test("the half of the slices with the least stolen time counts, with all that are as good", () => {
  const stolen = (ms: number) => ms;
  assert.deepEqual(leastBy([0, 30, 0, 10], stolen), [0, 0, 10]);
  assert.deepEqual(leastBy([30, 10, 20], stolen), [10, 20]);
  assert.deepEqual(leastBy([0, 0, 0], stolen), [0, 0, 0]);
});

test("the stolen time of the host never shrinks", () => {
  const before = stolenMs();
  assert.ok(before >= 0 && stolenMs() >= before);
});
