import assert from "node:assert/strict";
import { test } from "node:test";
import type { Grant } from "../holding/grant.js";
import { regroup } from "./regroup.js";
import { groupOf, managed, many } from "./renewal-group.fixture.js";
import type { RenewalGroup } from "./renewal-group.js";

test("regroup merges groups on the same terms into the largest, and leaves others as they are", () => {
  const all = many(7);
  const [a, b, c, d, e, f, g] = all as [Grant, Grant, Grant, Grant, Grant, Grant, Grant];
  const [odd, single] = [managed({ graceMs: 7 }).group, managed({ renew: false }).group];
  const small = groupOf([a, b]);
  const large = groupOf([c, d, e]);
  const [lone, other] = [f.group, g.group];
  const absorbed: RenewalGroup[] = [];
  const goOn = regroup([lone, small, odd, large, single, other], (group) => absorbed.push(group));
  assert.deepEqual(new Set(goOn), new Set([large, odd, single]));
  assert.deepEqual(new Set(absorbed), new Set([lone, small, other]));
  assert.deepEqual(new Set(large.grants), new Set(all));
  assert.ok(all.every(({ group }) => group === large));
  assert.ok(goOn.every((group) => group.managed) && !absorbed.some((group) => group.managed));
});

test("regroup merges single grants into one group, and leaves one alone", () => {
  const [a, b] = many(2) as [Grant, Grant];
  const { group } = a;
  assert.deepEqual(
    regroup([group], () => assert.fail()),
    [group],
  );
  assert.equal(regroup([group, b.group], () => {}).length, 1);
  assert.equal(a.group, b.group);
});

test("regroup leaves groups alone beyond the most kinds that it compares", () => {
  const kinds = Array.from({ length: 20 }, (_, i) => managed({ graceMs: i }).group);
  const twins = Array.from({ length: 20 }, (_, i) => managed({ graceMs: i }).group);
  const goOn = regroup([...kinds, ...twins], () => {});
  assert.equal(goOn.filter(({ size }) => size === 2).length, 8);
  assert.equal(goOn.length, 8 + 24);
});
