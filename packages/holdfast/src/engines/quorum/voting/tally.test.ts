import assert from "node:assert/strict";
import { test } from "node:test";
import type { NodeAnswer, NodeHolder } from "../nodes/node.js";
import { Tally } from "./tally.js";

const FENCE = 1_000;

function holder(fence: number, ageMs: number, mode: NodeHolder["mode"] = "x"): NodeHolder {
  const times = { leftMs: 5_000, delayMs: 0, ageMs };
  return { mode, fence, tokens: 1, index: 0, label: `of ${fence}`, revoked: false, ...times };
}

const busy = (...holders: NodeHolder[]): NodeAnswer => ({ kind: "busy", counter: 1, holders });
const free: NodeAnswer = { kind: "counter", counter: 1 };

/** The holders that the tally names; three of five nodes make a grant, and missing nodes are silent. */
function named(...answers: NodeAnswer[]): number[] {
  const tally = new Tally(5, 3, FENCE, 1);
  for (const [node, answer] of answers.entries()) tally.add(node, answer, Infinity);
  return tally.holders().map(({ fence }) => fence);
}

test("a holder is named, and a contender beside it is not", () => {
  const [held, bid] = [holder(7, 4_000), holder(9, 2)];
  assert.deepEqual(named(busy(held), busy(held), busy(held)), [7]);
  assert.deepEqual(named(busy(held), busy(bid), busy(held)), [7]);
  assert.deepEqual(named(busy(bid), busy(held)), [7]);
});

test("contenders alone are not named as holders", () => {
  assert.deepEqual(named(busy(holder(8, 2)), busy(holder(9, 3)), free), []);
  assert.deepEqual(named(busy(holder(9, 2)), free, free), []);
});

test("a claim on enough nodes is a holder, however new it is", () => {
  const held = holder(7, 1);
  assert.deepEqual(named(busy(held), busy(held), busy(held)), [7]);
});

test("an old record on too few of the nodes that answered is not a holder", () => {
  assert.deepEqual(named(busy(holder(7, 4_000)), free, free, free), []);
});

test("readers are named together, and not beside a writer", () => {
  const readers = [holder(7, 900, "s"), holder(8, 800, "s")];
  assert.deepEqual(named(busy(...readers), busy(...readers), busy(...readers)), [7, 8]);
  const writer = holder(9, 2);
  assert.deepEqual(named(busy(...readers), busy(...readers), busy(writer)), [7, 8]);
});

test("a node that asks for a fence above the limit does not count as a refusal", () => {
  const tally = new Tally(5, 3, FENCE, 1);
  const limit = 2 * FENCE;
  const held = busy(holder(7, 4_000));
  assert.equal(tally.add(0, { kind: "counter", counter: limit + 1 }, limit), false);
  assert.equal(tally.add(1, held, limit), false);
  assert.equal(tally.add(2, held, limit), false);
  assert.equal(tally.add(3, held, limit), true);
  tally.leaveOutAbove(limit);
  assert.equal(tally.present, 3);
});
