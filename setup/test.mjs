// `npm test` and `npm run test:long`. Arguments select test files by a part of their path.
// `--times` shows the slowest files.
import "./node-version.mjs";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { ensureBuilt } from "./build.mjs";
import { ensureInstalled } from "./install.mjs";
import { findTestFiles, runTests } from "./run-tests.mjs";
import { SetupError, script } from "./script.mjs";
import { ensureServers } from "./servers.mjs";
import { root } from "./workspace.mjs";

const long = process.argv.includes("--long");
const times = process.argv.includes("--times");
const filters = process.argv.slice(2).filter((arg) => !arg.startsWith("--"));
const startedAt = Date.now();
const failures = [];

await script(async () => {
  // Before the build: a misspelt filter must not take half a minute.
  const files = findTestFiles({ long, filters });
  if (files.length === 0) throw new SetupError(noFiles());
  await step("packages installed", ensureInstalled);
  await step("types: tsc strict, by the build", ensureBuilt);
  await step("servers installed", ensureServers);
  await step("format and lint", lint);
  await step(`tests: ${files.length} files`, () =>
    runTests({ node: process.execPath, files, long, times }),
  );
  const seconds = ((Date.now() - startedAt) / 1000).toFixed(1);
  for (const failure of failures) console.log(`FAILED ${failure}`);
  console.log(failures.length === 0 ? `All good in ${seconds} s.` : `Failed after ${seconds} s.`);
  process.exitCode = failures.length === 0 ? 0 : 1;
});

function noFiles() {
  const kind = long ? "long test file" : "test file";
  const given = filters.map((filter) => JSON.stringify(filter)).join(" or ");
  return `No ${kind} has ${given} in its path. A filter is a part of a path, such as "redis/test/queue".`;
}

async function step(title, work) {
  console.log(`== ${title}`);
  const reasons = (await work()) ?? [];
  failures.push(...reasons.map((reason) => `${title}: ${reason}`));
}

function lint() {
  const biome = join(root, "node_modules/@biomejs/biome/bin/biome");
  const colors = `--colors=${process.stdout.isTTY ? "force" : "off"}`;
  const { status } = spawnSync(process.execPath, [biome, "ci", "--error-on-warnings", colors], {
    cwd: root,
    stdio: "inherit",
  });
  return status === 0 ? [] : ["npm run format repairs most of it"];
}
