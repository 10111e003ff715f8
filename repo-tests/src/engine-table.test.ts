import assert from "node:assert/strict";
import { test } from "node:test";
import { engineFacts } from "./engine-facts.js";
import { freshPages, withMarked } from "./engine-table.js";
import { read } from "./repo-files.js";

test("the tables of engines are what the code says about itself", async () => {
  const hint = "run node repo-tests/dist/engine-table.js --write";
  for (const [path, text] of await freshPages()) assert.equal(read(path), text, `${path}: ${hint}`);
});

test("an engine's facts come from its traits, its facets and its harness", async () => {
  const { traits, queue, watch, notes } = await engineFacts("memory");
  assert.deepEqual([traits.fencing, queue, watch], ["process", true, true]);
  assert.ok(notes.excused.some(({ law }) => law.startsWith("L4.17 ")));
  assert.ok(notes.notAsked.some(({ why }) => why === "no other process can reach this backend"));
});

test("a text replaces what is between its marks, and nothing else", () => {
  const page = "a\n<!-- engines -->\nold\n<!-- /engines -->\nb\n";
  const fresh = withMarked(page, "engines", "new\n");
  assert.equal(fresh, "a\n<!-- engines -->\nnew\n<!-- /engines -->\nb\n");
  assert.throws(() => withMarked(page, "channels", "new\n"), /no place/);
});
