import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { DeadlineHeap, type HeapEntry, NOWHERE } from "./deadline-heap.js";

test("the heap always returns the earliest entry, after any sets, moves and deletions", () => {
  // The first entry is read only now and then; new entries lie beside the heap until then.
  const step = fc.record({ item: fc.nat(5), at: fc.option(fc.nat(100)), asks: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step, { minLength: 50, maxLength: 200 }), (steps) => {
      const heap = new DeadlineHeap<HeapEntry>();
      const items = Array.from({ length: 6 }, () => ({ place: NOWHERE }));
      const known = new Map<HeapEntry, number>();
      for (const { item: i, at, asks } of steps) {
        const item = items[i]!;
        if (at === null) {
          heap.delete(item);
          known.delete(item);
        } else {
          heap.set(item, at);
          known.set(item, at);
        }
        assert.deepEqual(new Set(heap.items()), new Set(known.keys()));
        assert.equal(heap.size, known.size);
        if (!asks) continue;
        const earliest = Math.min(...known.values());
        assert.equal(heap.earliest, earliest);
        assert.equal(
          heap.first === undefined ? undefined : known.get(heap.first),
          known.size > 0 ? earliest : undefined,
        );
      }
      const drained: number[] = [];
      for (let first = heap.first; first !== undefined; first = heap.first) {
        drained.push(heap.earliest);
        heap.delete(first);
      }
      assert.deepEqual(
        drained,
        [...known.values()].sort((a, b) => a - b),
      );
    }),
  );
});
