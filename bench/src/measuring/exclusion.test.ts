import assert from "node:assert/strict";
import { test } from "node:test";
import { suite as planted } from "../test/planted.fixture.js";
import { checkExclusion, ExclusionError } from "./exclusion.js";
import { runSuite } from "./run-suite.js";
import { type Section, SectionLog, unpack } from "./section-log.js";

const section = (enteredAt: number, leftAt: number): Section => {
  return { waiter: 0, askedAt: 0, enteredAt, leftAt };
};

test("sections that touch do not overlap, and come back in order", () => {
  const logs = [[section(3, 4), section(4, 5)], [section(1, 3)]];
  const entered = checkExclusion("a lock", logs).map(({ enteredAt }) => enteredAt);
  assert.deepEqual(entered, [1, 3, 4]);
});

test("an overlap is found in one process and between two processes", () => {
  assert.throws(() => checkExclusion("a", [[section(2, 4), section(1, 3)]]), ExclusionError);
  assert.throws(() => checkExclusion("a", [[section(1, 3)], [section(2, 2)]]), ExclusionError);
});

for (const { id } of planted.scenarios) {
  const options = {
    ...{ seconds: 0.1, size: Infinity, quick: true, rounds: 2, scenarios: [id] },
    onProgress: () => {},
  };
  test(`the bench refuses an engine of ours that excludes nobody: ${id}`, async () => {
    const run = runSuite(planted, { ...options, contenders: ["open-door"] });
    await assert.rejects(run, ExclusionError);
  });

  test(`the bench shows no numbers of a peer that excludes nobody: ${id}`, async () => {
    const { tables } = await runSuite(planted, { ...options, contenders: ["theirs"] });
    const [row] = tables[0]!.rows;
    assert.equal(row!.measures, null);
    assert.match(row!.why!, /^disqualified: another's open door let two holders in at once/);
  });
}

test("a log of several chunks is the same after packing and unpacking", () => {
  const log = new SectionLog();
  const count = 40_000;
  for (let i = 0; i < count; i++) log.add(i % 7, i, i + 0.25, i + 0.5);
  const sections = unpack(log.pack());
  assert.equal(sections.length, count);
  const last = count - 1;
  const expected = { waiter: last % 7, askedAt: last, enteredAt: last + 0.25, leftAt: last + 0.5 };
  assert.deepEqual(sections.at(-1), expected);
});
