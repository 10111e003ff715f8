import assert from "node:assert/strict";
import { test } from "node:test";
import type { Failed, Gone, Renewed } from "../../engine.js";
import type { Grant } from "../holding/grant.js";
import { type RenewalAnswer, RenewalBatch } from "./renewal-batch.js";
import { groupOf, many } from "./renewal-group.fixture.js";
import type { RenewalGroup } from "./renewal-group.js";

const RENEWED: Renewed = { kind: "renewed", since: 800, ttlMs: 1_000 };
const GONE: Gone = { kind: "gone", why: "expired" };
const FAILED: Failed = { kind: "failed", effect: "unknown", error: new Error("shard down") };

/** The answer that each grant gets through its group, in order. */
function settled(batch: RenewalBatch, grants: readonly Grant[], answers: RenewalAnswer[]) {
  const byGroup = new Map<RenewalGroup, RenewalAnswer>();
  for (const { group, answer } of batch.settle(answers)) {
    assert.equal(byGroup.has(group), false, "a group has two outcomes");
    assert.ok(answer.kind !== "gone" || group.size === 1, "only a grant that is alone is gone");
    byGroup.set(group, answer);
  }
  return grants.map(({ group }) => byGroup.get(group));
}

test("a group whose grants get equal answers has one outcome, and stays as it is", () => {
  const all = many(3);
  const group = groupOf(all);
  const batch = new RenewalBatch([group]);
  assert.equal(batch.refs, group.refs);
  const outcomes = batch.settle([RENEWED, { ...RENEWED }, RENEWED]);
  assert.deepEqual(outcomes, [{ group, answer: RENEWED, index: 0 }]);
  assert.ok(group.consistsOf(group.grants));
});

for (const [title, kinds] of [
  ["the first is gone", [GONE, RENEWED, RENEWED]],
  ["the last is gone", [RENEWED, RENEWED, GONE]],
  ["all are gone", [GONE, GONE, GONE]],
  ["all but one are gone", [GONE, RENEWED, GONE]],
  ["one failed", [RENEWED, FAILED, RENEWED]],
  ["all failed for one reason", [FAILED, FAILED, FAILED]],
  ["each has an answer of its own", [FAILED, GONE, RENEWED]],
  ["one was renewed for less", [RENEWED, { ...RENEWED, ttlMs: 900 }, RENEWED]],
] as const) {
  test(`each grant gets its own answer when ${title}`, () => {
    const all = many(3);
    const batch = new RenewalBatch([groupOf(all)]);
    assert.deepEqual(settled(batch, all, [...kinds]), kinds);
  });

  test(`each grant gets its own answer when ${title}, and one grant has left`, () => {
    for (const leaver of [0, 1, 2]) {
      const all = many(3);
      const batch = new RenewalBatch([groupOf(all)]);
      all[leaver]!.leaveGroup();
      assert.deepEqual(settled(batch, all, [...kinds]), kinds);
    }
  });
}

test("answers reach the right grants of several groups", () => {
  const all = many(6);
  const groups = [groupOf(all.slice(0, 2)), all[2]!.group, groupOf(all.slice(3))];
  const batch = new RenewalBatch(groups);
  assert.deepEqual(
    batch.refs.map(({ resource }) => resource),
    all.map(({ resource }) => resource),
  );
  all[4]!.leaveGroup();
  const answers = [RENEWED, GONE, FAILED, RENEWED, GONE, RENEWED];
  assert.deepEqual(settled(batch, all, answers), answers);
});

test("a grant that left before the batch is sent keeps its validity", () => {
  const all = many(2);
  const group = groupOf(all);
  const batch = new RenewalBatch([group]);
  const alone = all[0]!.leaveGroup();
  alone.confirm({ since: 900, ttlMs: 5_000 });
  batch.expect(950);
  assert.deepEqual([alone.validUntil, group.validUntil], [5_900, 1_500]);
});
