import assert from "node:assert/strict";
import { existsSync, statSync } from "node:fs";
import { join, normalize } from "node:path";
import { test } from "node:test";
import { assertNone } from "./findings.js";
import { anchorsOf, relativeLinks } from "./links.js";
import { read, root } from "./repo-files.js";
import { markdownFiles } from "./samples.js";

test("relative links in Markdown lead to files and headings that exist", () => {
  const broken = markdownFiles().flatMap((path) =>
    relativeLinks(read(path))
      .filter((link) => !leadsSomewhere(path, link))
      .map((link) => `${path} links to ${link}`),
  );
  assertNone(broken, "correct each link, or write the page or heading");
});

test("docs/README.md leads to every page", () => {
  const listed = relativeLinks(read("docs/README.md")).map((link) => normalize(join("docs", link)));
  const pages = markdownFiles().filter((path) => path.startsWith("docs/"));
  const missing = pages.filter((path) => path !== "docs/README.md" && !listed.includes(path));
  assertNone(missing, "add a row with a link to each of these pages to docs/README.md");
});

test("headings become anchors as on GitHub", () => {
  const anchors = anchorsOf("# One `two`, three!\n## 安装 与 使用\n## Same\n## Same\n");
  assert.deepEqual([...anchors], ["one-two-three", "安装-与-使用", "same", "same-1"]);
});

function leadsSomewhere(from: string, link: string): boolean {
  const [file = "", anchor] = decodeURI(link).split("#");
  const target = file === "" ? from : normalize(join(from, "..", file));
  if (target.startsWith("..") || !existsSync(join(root, target))) return false;
  if (anchor === undefined || !target.endsWith(".md")) return true;
  return statSync(join(root, target)).isFile() && anchorsOf(read(target)).has(anchor);
}
