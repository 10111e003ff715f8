import { test } from "node:test";
import { read, repoFiles } from "./repo-files.js";

const LOOK_AGAIN = 200;
const TEST_LOOK_AGAIN = 300;

// Long files are often two; whether this one is, a person decides. So this reports and never fails.
test("file lengths", (t) => {
  const sources = repoFiles().filter((path) => /\.(ts|mjs|lua|sql)$/.test(path));
  const counted = sources
    .filter((path) => !path.endsWith(".gen.ts"))
    .map((path) => ({ path, lines: read(path).split("\n").length - 1 }))
    .sort((a, b) => b.lines - a.lines);
  const total = counted.reduce((sum, { lines }) => sum + lines, 0);
  t.diagnostic(`${counted.length} files, ${total} lines`);
  for (const { path, lines } of counted) {
    const most = /test\.ts$/.test(path) ? TEST_LOOK_AGAIN : LOOK_AGAIN;
    if (lines > most) t.diagnostic(`${lines} lines: ${path}`);
  }
});
