import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Agenda, type Entry, NOWHERE } from "./agenda.js";

test("the earliest is always at hand, whatever was set, moved and taken out", () => {
  // Who is first is asked only now and then: what is new lies beside the others until then.
  const step = fc.record({ item: fc.nat(5), at: fc.option(fc.nat(100)), asks: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step, { minLength: 50, maxLength: 200 }), (steps) => {
      const agenda = new Agenda<Entry>();
      const items = Array.from({ length: 6 }, () => ({ place: NOWHERE }));
      const known = new Map<Entry, number>();
      for (const { item: i, at, asks } of steps) {
        const item = items[i]!;
        if (at === null) {
          agenda.delete(item);
          known.delete(item);
        } else {
          agenda.set(item, at);
          known.set(item, at);
        }
        assert.deepEqual(new Set(agenda.items()), new Set(known.keys()));
        assert.equal(agenda.size, known.size);
        if (!asks) continue;
        const earliest = Math.min(...known.values());
        assert.equal(agenda.earliest, earliest);
        assert.equal(
          agenda.first === undefined ? undefined : known.get(agenda.first),
          known.size > 0 ? earliest : undefined,
        );
      }
      const drained: number[] = [];
      for (let first = agenda.first; first !== undefined; first = agenda.first) {
        drained.push(agenda.earliest);
        agenda.delete(first);
      }
      assert.deepEqual(
        drained,
        [...known.values()].sort((a, b) => a - b),
      );
    }),
  );
});
