import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { UsageError } from "../../errors.js";
import { checkResource, compileGlob, MAX_RESOURCE_BYTES } from "./resource.js";

for (const name of [
  "a",
  "a:b",
  " leading and trailing ",
  "UPPER",
  "{slot}",
  'it\'s "quoted"',
  "back\\slash/slash",
  "per%20cent",
  "ü",
  "u\u0308",
  "锁",
  "🔒",
  "\n",
  "__proto__",
  "x".repeat(MAX_RESOURCE_BYTES),
  "锁".repeat(341),
  "🔒".repeat(256),
]) {
  test(`${JSON.stringify(name.slice(0, 20))} (${name.length}) is a name as it is`, () => {
    checkResource(name);
  });
}

for (const [why, name] of [
  ["no string", 5],
  ["undefined", undefined],
  ["null", null],
  ["empty", ""],
  ["with NUL", "a\0b"],
  ["half a surrogate pair", "a\ud800b"],
  ["the other half", "\udc00"],
  ["too long in ASCII", "x".repeat(MAX_RESOURCE_BYTES + 1)],
  ["too long in UTF-8 only", "锁".repeat(342)],
  ["too long in four bytes each", "🔒".repeat(257)],
] as const) {
  test(`a name that is ${why} is refused with UsageError`, () => {
    assert.throws(() => checkResource(name), UsageError);
  });
}

test("a glob's star matches any run, its question mark one character, all else itself", () => {
  const matches = (glob: string, name: string) => compileGlob(glob).test(name);
  assert.ok(matches("*", "anything\nat all"));
  assert.ok(matches("invoice:*", "invoice:"));
  assert.ok(!matches("invoice:*", "invoices:1"));
  assert.ok(matches("a?c", "a🔒c"));
  assert.ok(!matches("a?c", "ac"));
  assert.ok(matches("a.c", "a.c"));
  assert.ok(!matches("a.c", "abc"));
  assert.ok(!matches("a", "ba"));
});

test("a glob without star and question mark matches its own text only", () => {
  const plain = fc.string({ unit: "binary", minLength: 1 }).filter((s) => !/[*?]/.test(s));
  fc.assert(
    fc.property(plain, plain, (text, other) => {
      assert.ok(compileGlob(text).test(text));
      assert.equal(compileGlob(text).test(other), text === other);
    }),
    { numRuns: 50 },
  );
});

test("a glob with stars agrees with a search of all ways to split the name among them", () => {
  const text = fc.string({ unit: fc.constantFrom("a", "b", "🔒"), maxLength: 8 });
  const glob = fc.string({ unit: fc.constantFrom("a", "b", "🔒", "*", "?"), maxLength: 8 });
  fc.assert(
    fc.property(glob, text, (pattern, name) => {
      const expected = matchesInSomeWay([...pattern], [...name]);
      assert.equal(compileGlob(pattern).test(name), expected);
    }),
    { numRuns: 2_000 },
  );
});

function matchesInSomeWay([first, ...rest]: string[], name: string[]): boolean {
  if (first === undefined) return name.length === 0;
  if (first === "*") {
    return (
      matchesInSomeWay(rest, name) ||
      (name.length > 0 && matchesInSomeWay(["*", ...rest], name.slice(1)))
    );
  }
  return (
    name.length > 0 && (first === "?" || first === name[0]) && matchesInSomeWay(rest, name.slice(1))
  );
}

test("a glob of many stars answers at once for a name that nearly matches", () => {
  assert.equal(compileGlob("*a*a*a*a*a*a*b").test("a".repeat(1_000)), false);
  assert.equal(compileGlob(`${"*a".repeat(200)}*b`).test("a".repeat(1_000)), false);
});
