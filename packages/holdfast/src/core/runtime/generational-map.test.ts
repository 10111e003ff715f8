import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { GenerationalMap } from "./generational-map.js";

test("entries that stay are found after any number of others came and went", () => {
  const entries = new GenerationalMap<string, number>();
  for (let i = 0; i < 10; i++) entries.add(`stays ${i}`, i);
  for (let i = 0; i < 10_000; i++) {
    entries.add(`goes ${i}`, i);
    assert.equal(entries.get(`goes ${i}`), i);
    assert.equal(entries.delete(`goes ${i}`), true);
    assert.equal(entries.delete(`goes ${i}`), false);
    assert.equal(entries.size, 10);
  }
  assert.deepEqual(entries.values(), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
});

for (const many of [0, 5_000]) {
  test(`it behaves like a Map in every generation, beside ${many} other entries`, () => {
    const step = fc.record({ key: fc.nat(20), others: fc.nat(1_500) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const entries = new GenerationalMap<number, number>();
        const map = new Map<number, number>();
        for (let i = 0; i < many; i++) {
          entries.add(1_000 + i, -i);
          map.set(1_000 + i, -i);
        }
        for (const [i, { key, others }] of steps.entries()) {
          assert.equal(entries.delete(key), map.delete(key));
          if (others % 3 > 0) {
            entries.add(key, i);
            map.set(key, i);
          }
          for (let other = 0; other < others; other++) {
            entries.add(-1, other);
            entries.delete(-1);
          }
          assert.equal(entries.delete(-1), false, "it has gone already");
          assert.equal(entries.size, map.size);
          for (let k = 0; k <= 20; k++) assert.equal(entries.get(k), map.get(k));
          assert.equal(entries.get(1_000), map.get(1_000));
          assert.deepEqual(new Set(entries.values()), new Set(map.values()));
        }
      }),
      { numRuns: 50 },
    );
  });
}
