import assert from "node:assert/strict";
import { test } from "node:test";
import { read } from "./repo-files.js";
import { markdownFiles, regionOf, samplesIn } from "./samples.js";

test("both editions of the README quote the same samples, the first by line 10", () => {
  const english = samplesIn(read("README.md")).map(({ source }) => source);
  const chinese = samplesIn(read("README.zh-CN.md")).map(({ source }) => source);
  assert.ok(english.length > 0);
  assert.deepEqual(chinese, english);
  const lines = read("README.md").split("\n");
  assert.ok(lines.findIndex((line) => line.startsWith("```")) < 10);
});

test("the first sample shows its import from the library", () => {
  const [first] = samplesIn(read("README.md"));
  assert.match(first?.quoted ?? "", /^import \{ connect \} from "holdfast";\n/);
});

test("every sample mark is followed by a code block", () => {
  for (const path of markdownFiles()) {
    const marks = [...read(path).matchAll(/^<!-- sample: /gm)];
    assert.equal(marks.length, samplesIn(read(path)).length, path);
  }
});

test("a region loses its common indentation", () => {
  const source = "x\n  // #region a\n  if (b) {\n\n    c();\n  }\n  // #endregion\n";
  assert.equal(regionOf(source, "a", "x.ts"), "if (b) {\n\n  c();\n}\n");
  assert.throws(() => regionOf(source, "z", "x.ts"), /no region z/);
});
