import assert from "node:assert/strict";
import { test } from "node:test";
import { mintGrantId } from "./grant-id.js";

test("a grantId is 128 bits in hex and never repeats, across refills of the pool", () => {
  const ids = Array.from({ length: 10_000 }, mintGrantId);
  for (const id of ids) assert.match(id, /^[0-9a-f]{32}$/);
  assert.equal(new Set(ids).size, ids.length);
});

test("every bit of a grantId varies", () => {
  const ids = Array.from({ length: 2_000 }, () => BigInt(`0x${mintGrantId()}`));
  for (let bit = 0n; bit < 128n; bit++) {
    const ones = ids.filter((id) => (id >> bit) & 1n).length;
    assert.ok(ones > 800 && ones < 1_200, `bit ${bit} was one in ${ones} of 2 000`);
  }
});
