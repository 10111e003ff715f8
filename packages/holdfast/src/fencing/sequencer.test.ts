import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Sequence } from "../engine.js";
import { UsageError } from "../errors.js";
import { formatSequencer, parseSequencer } from "./sequencer.js";

const names = fc
  .string({ unit: "binary", minLength: 1, maxLength: 64 })
  .filter((name) => !name.includes("\0"));
const sequences: fc.Arbitrary<Sequence> = fc.record({
  mode: fc.constantFrom("exclusive", "shared"),
  token: fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }),
  resource: names,
});

test("parseSequencer reverses formatSequencer for every name", () => {
  fc.assert(
    fc.property(sequences, (sequence) => {
      assert.deepEqual(parseSequencer(formatSequencer(sequence)), { ...sequence });
    }),
    { numRuns: 200 },
  );
});

test("a sequencer is printable ASCII without spaces, so that it fits a header", () => {
  fc.assert(
    fc.property(sequences, (sequence) => {
      assert.match(formatSequencer(sequence), /^[!-~]+$/);
    }),
  );
});

test("different sequences have different sequencers", () => {
  fc.assert(
    fc.property(sequences, sequences, (a, b) => {
      const same = a.mode === b.mode && a.token === b.token && a.resource === b.resource;
      assert.equal(formatSequencer(a) === formatSequencer(b), same);
    }),
  );
});

test("a sequencer reads mode, token, name", () => {
  const sequence: Sequence = { mode: "shared", token: 42n, resource: "invoice:42/ü" };
  assert.equal(formatSequencer(sequence), "shared:42:invoice%3A42%2F%C3%BC");
});

for (const text of [
  "",
  "exclusive",
  "exclusive:1:",
  "exclusive::a",
  "exclusive:-1:a",
  "exclusive:01:a",
  "exclusive:1.5:a",
  "exclusive:0x1:a",
  "exclusive:9223372036854775808:a",
  "exclusive:99999999999999999999:a",
  "Exclusive:1:a",
  "write:1:a",
  "exclusive:1:%zz",
  "exclusive:1:%00",
  "exclusive:1:%ed%a0%80",
  " exclusive:1:a",
  `exclusive:1:${"a".repeat(1_025)}`,
]) {
  test(`${JSON.stringify(text.slice(0, 40))} is refused with UsageError`, () => {
    assert.throws(() => parseSequencer(text), UsageError);
  });
}

test("a sequencer that is not a string is refused with UsageError", () => {
  const circle: Record<string, unknown> = {};
  circle.self = circle;
  for (const value of [undefined, null, 5, 5n, {}, [], Symbol("s"), circle]) {
    assert.throws(() => parseSequencer(value), UsageError, String(typeof value));
  }
});
