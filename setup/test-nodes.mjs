// `npm run test:nodes`: runs the compiled tests under every supported Node release line.
import "./node-version.mjs";
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { ensureBuilt } from "./build.mjs";
import { ensureInstalled, npmCommand } from "./install.mjs";
import { withLock } from "./lock.mjs";
import { excerpt, runQuietly } from "./progress.mjs";
import { findTestFiles, runTests } from "./run-tests.mjs";
import { SetupError, script } from "./script.mjs";
import { ensureServers } from "./servers.mjs";
import { stateFolder } from "./workspace.mjs";

const MAJORS = [20, 22, 24, 26];
const PACKAGE = `node-${process.platform}-${process.arch}`;
const DOWNLOAD_TIMEOUT_MS = 10 * 60_000;
const filters = process.argv.slice(2).filter((arg) => !arg.startsWith("--"));

await script(async () => {
  await ensureInstalled();
  await ensureBuilt();
  const [reason] = await ensureServers();
  if (reason !== undefined) throw new SetupError(reason);
  const files = findTestFiles({ long: false, filters });
  const rows = [];
  for (const major of MAJORS) {
    const node = await ensureNode(major);
    const version = spawnSync(node, ["--version"], { encoding: "utf8" }).stdout.trim();
    console.log(`== Node ${version}: ${files.length} files`);
    const startedAt = Date.now();
    const reasons = await runTests({ node, files, long: false });
    rows.push({ version, seconds: Math.round((Date.now() - startedAt) / 1000), reasons });
  }
  for (const { version, seconds, reasons } of rows) {
    const result = reasons.length === 0 ? "passed" : `FAILED ${reasons.join("; ")}`;
    console.log(`${version.padEnd(12)} ${String(seconds).padStart(4)} s  ${result}`);
  }
  process.exitCode = rows.every(({ reasons }) => reasons.length === 0) ? 0 : 1;
});

/** The path of a Node binary of this major version. The first call downloads it. */
async function ensureNode(major) {
  const folder = join(stateFolder, "nodes", String(major));
  const node = join(folder, "node_modules", PACKAGE, "bin/node");
  await withLock(`downloading Node ${major}`, async () => {
    if (existsSync(node)) return;
    const [file, ...args] = npmCommand();
    const options = ["--ignore-scripts", "--no-save", "--prefix", folder];
    const { code, output } = await runQuietly(
      `downloading Node ${major}`,
      file,
      [...args, "install", ...options, `${PACKAGE}@${major}`],
      { timeoutMs: DOWNLOAD_TIMEOUT_MS },
    );
    if (code !== 0 || !existsSync(node)) {
      throw new SetupError(`${excerpt(output)}\n\n${PACKAGE}@${major} could not be installed.`);
    }
  });
  return node;
}
