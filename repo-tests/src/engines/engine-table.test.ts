import assert from "node:assert/strict";
import { test } from "node:test";
import { engineFacts, engineNames } from "./engine-facts.js";
import { ROWS, UNTOLD, withMarked } from "./engine-table.js";

test("an engine's facts come from its traits, its facets and its harness", async () => {
  const { traits, queue, watch, notes } = await engineFacts("memory");
  assert.deepEqual([traits.fencing, queue, watch], ["process", true, true]);
  assert.ok(notes.excused.some(({ law }) => law.startsWith("L4.17 ")));
  assert.ok(notes.notAsked.some(({ why }) => why === "no other process can reach this backend"));
});

test("each trait of an engine has a row in the table of engines, or a reason why not", async () => {
  const told = new Set<string>([...ROWS.map(({ trait }) => trait ?? ""), ...Object.keys(UNTOLD)]);
  for (const name of engineNames()) {
    const { traits } = await engineFacts(name);
    const missing = Object.keys(traits).filter((trait) => !told.has(trait));
    assert.deepEqual(
      missing,
      [],
      `${name}: add a row to ROWS in repo-tests/src/engines/engine-table.ts`,
    );
  }
});

test("a text replaces what is between its marks, and nothing else", () => {
  const page = "a\n<!-- engines -->\nold\n<!-- /engines -->\nb\n";
  const fresh = withMarked(page, "engines", "new\n");
  assert.equal(fresh, "a\n<!-- engines -->\nnew\n<!-- /engines -->\nb\n");
  assert.throws(() => withMarked(page, "channels", "new\n"), /no place/);
});
