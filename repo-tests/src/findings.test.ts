import assert from "node:assert/strict";
import { test } from "node:test";
import { assertNone } from "./findings.js";

test("a list of findings fails with what to do, and an empty list passes", () => {
  assertNone([], "sweep");
  assert.throws(() => assertNone(["a", "b"], "sweep"), { message: "sweep:\n  a\n  b" });
});
