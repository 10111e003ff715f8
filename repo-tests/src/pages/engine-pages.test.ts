// A reader who knows one engine's page finds everything on the next one at the same place.
import assert from "node:assert/strict";
import { test } from "node:test";
import { engineNames } from "../engine-facts.js";
import { read } from "../repo-files.js";

const HEADINGS = [
  "When to take it",
  "Connect",
  "Before the first use",
  "What it promises, and what not",
  "When something fails",
  "Waiting",
  "Options",
  "What it costs",
  "Other programs on the same locks",
  "How it is stored",
];
/** Nobody outside the process waits there. */
const WITHOUT_WAITING = ["memory"];

for (const name of engineNames()) {
  test(`docs/engines/${name}.md has the headings of all engine pages in their order`, () => {
    const found = [...read(`docs/engines/${name}.md`).matchAll(/^## (.+)$/gm)].map(([, h]) => h);
    const wanted = HEADINGS.filter((h) => h !== "Waiting" || !WITHOUT_WAITING.includes(name));
    assert.deepEqual(found, wanted);
  });
}
