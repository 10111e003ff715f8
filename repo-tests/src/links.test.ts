import assert from "node:assert/strict";
import { existsSync, statSync } from "node:fs";
import { join, normalize } from "node:path";
import { test } from "node:test";
import { read, root } from "./repo-files.js";
import { markdownFiles } from "./samples.js";

// Links and images, inline or by reference. Code is cut out before.
const LINK = /\]\(<?([^)\s>]+)>?(?:\s+"[^"]*")?\)|^\[[^\]]+\]:\s*(\S+)/gm;
const CODE = /^(```|~~~)[\s\S]*?^\1|`[^`\n]*`/gm;

test("relative links in Markdown lead to files and headings that exist", () => {
  const broken = markdownFiles().flatMap((path) =>
    linksIn(read(path))
      .filter((link) => !/^[a-z]+:/i.test(link) && !leadsSomewhere(path, link))
      .map((link) => `${path} links to ${link}`),
  );
  assert.deepEqual(broken, []);
});

test("headings become anchors as on GitHub", () => {
  const anchors = anchorsOf("# One `two`, three!\n## 安装 与 使用\n## Same\n## Same\n");
  assert.deepEqual([...anchors], ["one-two-three", "安装-与-使用", "same", "same-1"]);
});

function linksIn(markdown: string): string[] {
  return [...markdown.replace(CODE, "").matchAll(LINK)].map((match) => match[1] ?? match[2] ?? "");
}

function leadsSomewhere(from: string, link: string): boolean {
  const [file = "", anchor] = decodeURI(link).split("#");
  const target = file === "" ? from : normalize(join(from, "..", file));
  if (target.startsWith("..") || !existsSync(join(root, target))) return false;
  if (anchor === undefined || !target.endsWith(".md")) return true;
  return statSync(join(root, target)).isFile() && anchorsOf(read(target)).has(anchor);
}

function anchorsOf(markdown: string): Set<string> {
  const anchors = new Set<string>();
  const headings = markdown.replace(/^(```|~~~)[\s\S]*?^\1/gm, "").matchAll(/^#{1,6} +(.+)$/gm);
  for (const [, heading = ""] of headings) {
    const slug = heading
      .trim()
      .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\p{M}\s_-]/gu, "")
      .replace(/\s/g, "-");
    let anchor = slug;
    for (let n = 1; anchors.has(anchor); n++) anchor = `${slug}-${n}`;
    anchors.add(anchor);
  }
  return anchors;
}
