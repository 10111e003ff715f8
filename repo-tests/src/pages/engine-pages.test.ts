// A reader who knows one engine's page finds everything on the next one at the same place.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { engineNames } from "../engines/engine-facts.js";
import { read, root } from "../repo-files.js";

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
    const path = `docs/engines/${name}.md`;
    assert.ok(
      existsSync(join(root, path)),
      `write ${path}, with these headings:\n  ${HEADINGS.join("\n  ")}`,
    );
    const found = [...read(path).matchAll(/^## (.+)$/gm)].map(([, h]) => h);
    const wanted = HEADINGS.filter((h) => h !== "Waiting" || !WITHOUT_WAITING.includes(name));
    const say = (headings: readonly unknown[]) => headings.join(" | ") || "none";
    assert.ok(
      isDeepStrictEqual(found, wanted),
      `the headings of ${path} are ${say(found)}; they must be ${say(wanted)}`,
    );
  });
}
