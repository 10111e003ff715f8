import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { assertNone } from "../findings.js";
import { read, root } from "../repo-files.js";
import { engineNames } from "./engine-facts.js";
import { type Repository, stepsLeft } from "./engine-steps.js";

const repository: Repository = { has: (path) => existsSync(join(root, path)), read };
const engines = engineNames();

test("there are engines", () => {
  assert.ok(engines.length > 0);
});

for (const engine of engines) {
  test(`engine ${engine} has code, laws with a harness, a page, an export, a scheme and words`, () => {
    assertNone(stepsLeft(engine, repository), `the engine ${engine} is not complete`);
  });
}

test("an engine of which only the folder exists is told every step", () => {
  const left = stepsLeft("new-engine", repository);
  const wanted = [
    /index\.ts: it exports the factory/,
    /export from it: const NEW_ENGINE_TRAITS: EngineTraits/,
    /export from it: function harness\(\): Harness/,
    /conformance\.test\.ts/,
    /connect\.ts/,
    /newEngineEngine to .*known-options\.test\.ts/,
    /newEngineEngine to .*handed-in\.test\.ts/,
    /exports in packages\/holdfast\/package\.json: .*\.\/dist\/engines\/new-engine\/index\.d\.ts/,
    /docs\/engines\/new-engine\.md/,
    /docs\/README\.md/,
    /engine-words\.ts.*npm run write/,
    /CHANGELOG\.md/,
  ];
  assert.equal(left.length, wanted.length, left.join("\n"));
  for (const [i, step] of left.entries()) assert.match(step, wanted[i]!);
});

test("a file that lacks its export is a step that is left", () => {
  const without = (ending: string): Repository => ({
    ...repository,
    read: (path) => (path.endsWith(ending) ? "export const other = 1;\n" : read(path)),
  });
  for (const ending of ["memory/engine.ts", "memory/test/support/harness.fixture.ts"]) {
    const left = stepsLeft("memory", without(ending));
    assert.equal(left.length, 1, left.join("\n"));
    assert.ok(left[0]!.includes(ending));
  }
});

test("generated files match their sources", () => {
  execFileSync(process.execPath, ["setup/embed.mjs", "--check"], { cwd: root, stdio: "pipe" });
});
