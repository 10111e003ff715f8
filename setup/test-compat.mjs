// `npm run test:compat`: runs the laws and each engine's own tests against other versions of its
// server, one version after the other. Arguments select versions by a part of their name or by
// kind.
import "./node-version.mjs";
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { ensureBuilt } from "./build.mjs";
import { ensureVersion, KINDS, VERSIONS, versionOf } from "./compat/servers.mjs";
import { hasResult, missingRow, resultRow, writeRow } from "./compat/table.mjs";
import { ensureInstalled } from "./install.mjs";
import { findTestFiles, runTests } from "./run-tests.mjs";
import { SetupError, script } from "./script.mjs";
import { ensureServers } from "./servers.mjs";
import { stateFolder } from "./workspace.mjs";

const REPORT = join(stateFolder, "compat-report.jsonl");
const filters = process.argv.slice(2).map((arg) => arg.toLowerCase());

await script(async () => {
  const chosen = VERSIONS.filter(isAskedFor);
  if (chosen.length === 0) throw new SetupError(unknown());
  await ensureInstalled();
  await ensureBuilt();
  const [reason] = await ensureServers();
  if (reason !== undefined) throw new SetupError(reason);
  const lines = [];
  for (const version of chosen) lines.push(await ask(version));
  for (const { text } of lines) console.log(text);
  process.exitCode = lines.every(({ good }) => good) ? 0 : 1;
});

function isAskedFor({ name, kind }) {
  const matches = (filter) => kind === filter || name.toLowerCase().includes(filter);
  return filters.length === 0 || filters.some(matches);
}

function unknown() {
  const names = VERSIONS.map(({ name }) => name).join(", ");
  const kinds = Object.keys(KINDS).join(", ");
  return `no version is called ${filters.join(" or ")}. There are ${names}; or name a kind: ${kinds}`;
}

async function ask(version) {
  const { name, kind, home, programs } = version;
  console.log(`== ${name}`);
  let folder;
  try {
    folder = await ensureVersion(version);
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    // The result of an earlier run stays in the table.
    if (!hasResult(name)) writeRow(name, missingRow(name, error.message));
    return { text: `${name}: not run here: ${error.message}`, good: false };
  }
  const exact = await versionOf(join(folder, programs[0]));
  const env = { [`HOLDFAST_SERVER_${kind.toUpperCase()}`]: join(folder, home) };
  const reasons = await runTests({ files: filesOf(kind), env, report: reportTo(REPORT) });
  const tests = readReport();
  const [laws, own] = [tests.filter(isLaw), tests.filter((test) => !isLaw(test))];
  writeRow(name, resultRow(version, exact, laws, own, new Date().toISOString().slice(0, 10)));
  const passed = (some) => `${some.filter((test) => test.passed).length} of ${some.length}`;
  const score = `laws ${passed(laws)}, own tests ${passed(own)}`;
  return {
    text: [`${name} (${exact}): ${score}`, ...reasons].join("\n  "),
    good: reasons.length === 0,
  };
}

/** The engine's tests. Where a server needs tables first, also the test of `holdfast init`. */
function filesOf(kind) {
  const filters = KINDS[kind].map((engine) => `holdfast/dist/engines/${engine}/`);
  if (kind === "mysql" || kind === "postgres") filters.push("cli/dist/verbs/init.test.js");
  return findTestFiles({ long: false, filters });
}

/** Decided by the title, because node:test reports the file of the suite for every law. */
function isLaw({ name }) {
  return /(^|: )L\d+\.\d+ /.test(name);
}

function reportTo(path) {
  mkdirSync(stateFolder, { recursive: true });
  rmSync(path, { force: true });
  return path;
}

function readReport() {
  const lines = readFileSync(REPORT, "utf8").split("\n");
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line));
}
