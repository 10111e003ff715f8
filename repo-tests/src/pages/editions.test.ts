// The two editions of the README say the same. A test cannot compare languages, so it compares what is
// the same in both: headings, samples, code blocks, tables, generated blocks and links, in their order.
import assert from "node:assert/strict";
import { test } from "node:test";
import { relativeLinks } from "../links.js";
import { read } from "../repo-files.js";

const EDITIONS = ["README.md", "README.zh-CN.md"];
const LANDMARK = /^(#{1,6}) |^(<!-- .* -->)$|^(```\w*)$|^(\|(?:---\|)+)$/gm;

/** Headings by their level, marks, code blocks and tables. */
export function outline(markdown: string): string[] {
  return [...markdown.matchAll(LANDMARK)].map((match) => match.slice(1).find(Boolean) ?? "");
}

/** What each section links to, without the link from one edition to the other. */
function linksBySection(markdown: string): string[][] {
  return markdown.split(/^## /m).map((section) =>
    relativeLinks(section)
      .filter((link) => !EDITIONS.includes(link))
      .sort(),
  );
}

test("both editions of the README have the same headings, samples and tables in one order", () => {
  const [english, chinese] = EDITIONS.map((path) => outline(read(path)));
  assert.ok((english?.length ?? 0) > 20);
  assert.deepEqual(chinese, english);
});

test("both editions of the README link to the same pages, section by section", () => {
  const [english, chinese] = EDITIONS.map((path) => linksBySection(read(path)));
  assert.deepEqual(chinese, english);
});

test("code blocks that are no samples differ in their comments only", () => {
  const [english, chinese] = EDITIONS.map((path) =>
    [...read(path).matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, code = ""]) =>
      code.replace(/\s*#.*$/gm, ""),
    ),
  );
  assert.ok((english?.length ?? 0) > 0);
  assert.deepEqual(chinese, english);
});

test("the README has fewer than 200 lines", () => {
  for (const path of EDITIONS) assert.ok(read(path).split("\n").length <= 200, path);
});
