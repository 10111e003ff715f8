import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Registry } from "./registry.js";

test("entries that stay are there after any number of others came and went", () => {
  const registry = new Registry<string, number>();
  for (let i = 0; i < 10; i++) registry.add(`stays ${i}`, i);
  for (let i = 0; i < 10_000; i++) {
    registry.add(`goes ${i}`, i);
    assert.equal(registry.get(`goes ${i}`), i);
    assert.equal(registry.delete(`goes ${i}`), true);
    assert.equal(registry.delete(`goes ${i}`), false);
    assert.equal(registry.size, 10);
  }
  assert.deepEqual(registry.values(), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
});

for (const many of [0, 5_000]) {
  test(`it holds what a map would, in whatever generation an entry is, beside ${many} others`, () => {
    const step = fc.record({ key: fc.nat(20), others: fc.nat(1_500) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const registry = new Registry<number, number>();
        const map = new Map<number, number>();
        for (let i = 0; i < many; i++) {
          registry.add(1_000 + i, -i);
          map.set(1_000 + i, -i);
        }
        for (const [i, { key, others }] of steps.entries()) {
          assert.equal(registry.delete(key), map.delete(key));
          if (others % 3 > 0) {
            registry.add(key, i);
            map.set(key, i);
          }
          for (let other = 0; other < others; other++) {
            registry.add(-1, other);
            registry.delete(-1);
          }
          assert.equal(registry.delete(-1), false, "it has gone already");
          assert.equal(registry.size, map.size);
          for (let k = 0; k <= 20; k++) assert.equal(registry.get(k), map.get(k));
          assert.equal(registry.get(1_000), map.get(1_000));
          assert.deepEqual(new Set(registry.values()), new Set(map.values()));
        }
      }),
      { numRuns: 50 },
    );
  });
}
