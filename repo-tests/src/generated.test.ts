import assert from "node:assert/strict";
import { test } from "node:test";
import { firstDifference, GENERATORS, staleOf } from "./generated.js";
import { read } from "./repo-files.js";

for (const [what, generate] of Object.entries(GENERATORS)) {
  test(`pages with ${what} are up to date`, async () => {
    const stale = [...(await staleOf(generate))].map(([path, text]) => firstDifference(path, text));
    // No diff of whole pages: it would hide the command.
    if (stale.length > 0) assert.fail(`run "npm run write". ${stale.join("; ")}`);
  });
}

test("a page that differs is stale, and its first other line is named", async () => {
  const text = read("LICENSE").replace("MIT", "TIM");
  assert.equal((await staleOf(() => new Map([["LICENSE", text]]))).size, 1);
  assert.match(firstDifference("LICENSE", text), /^LICENSE:1: has "MIT.*", should have "TIM/);
  assert.match(
    firstDifference("LICENSE", `${read("LICENSE")}more\n`),
    /has "", should have "more"/,
  );
});
