import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { LIBRARY, type Manifest, readJson, repoFiles, root } from "./repo-files.js";

const engines = new Set(repoFiles(`${LIBRARY}/engines`).map((path) => path.split("/")[4] ?? ""));

test("there are engines", () => {
  assert.ok(engines.size > 0);
});

for (const engine of engines) {
  test(`engine ${engine} has index, laws with a harness, a docs page and an export`, () => {
    const { exports = {} } = readJson<Manifest>("packages/holdfast/package.json");
    const missing = [
      `${LIBRARY}/engines/${engine}/index.ts`,
      `${LIBRARY}/engines/${engine}/engine.ts`,
      `${LIBRARY}/engines/${engine}/test/conformance/conformance.test.ts`,
      `${LIBRARY}/engines/${engine}/test/support/harness.fixture.ts`,
      `docs/engines/${engine}.md`,
    ].filter((path) => !existsSync(join(root, path)));
    assert.deepEqual(missing, []);
    assert.deepEqual(exports[`./${engine}`], {
      types: `./dist/engines/${engine}/index.d.ts`,
      default: `./dist/engines/${engine}/index.js`,
    });
  });
}

test("generated files match their sources", () => {
  execFileSync(process.execPath, ["setup/embed.mjs", "--check"], { cwd: root, stdio: "pipe" });
});
