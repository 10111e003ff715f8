import { test } from "node:test";
import { read, repoFiles } from "./repo-files.js";

const LONG = 300;

// A long file is often two. A person decides whether it is, so this test reports and never fails.
test(`source files over ${LONG} lines are reported`, (t) => {
  const sources = repoFiles().filter((path) => /\.(ts|mjs|lua|sql)$/.test(path));
  const counted = sources
    .filter((path) => !path.endsWith(".gen.ts"))
    .map((path) => ({ path, lines: read(path).split("\n").length - 1 }))
    .sort((a, b) => b.lines - a.lines);
  const total = counted.reduce((sum, { lines }) => sum + lines, 0);
  t.diagnostic(`${counted.length} files, ${total} lines`);
  for (const { path, lines } of counted) {
    if (lines > LONG) t.diagnostic(`${lines} lines: ${path}`);
  }
});
