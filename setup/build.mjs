import "./node-version.mjs";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { embedAll } from "./embed.mjs";
import { ensureInstalled } from "./install.mjs";
import { withLock } from "./lock.mjs";
import { excerpt, runQuietly } from "./progress.mjs";
import { isMain, SetupError, script } from "./script.mjs";
import { filesBelow, readJson, root, stateFolder, workspaces } from "./workspace.mjs";

const STAMP = join(stateFolder, "built.json");
const TIMEOUT_MS = 10 * 60_000;
const OUTPUT = /\.(d\.ts|d\.ts\.map|js|js\.map)$/;

/** Compiles everything, unless the compiled files come from exactly these sources. */
export async function ensureBuilt() {
  if (isBuilt()) return;
  await withLock("building", async () => {
    if (!isBuilt()) await build();
  });
}

async function build() {
  rmSync(STAMP, { force: true });
  embedAll();
  for (const folder of workspaces()) sweep(folder);
  // Taken before the compiler reads, so that a file that is saved meanwhile is built again next
  // time.
  const before = fingerprint();
  const { code, output } = await runQuietly(
    "building",
    process.execPath,
    [join(root, "node_modules/typescript/bin/tsc"), "-b"],
    { timeoutMs: TIMEOUT_MS },
  );
  if (code !== 0) {
    throw new SetupError(`${excerpt(output, 200)}\n\nThe build failed with exit code ${code}.`);
  }
  mkdirSync(stateFolder, { recursive: true });
  writeFileSync(STAMP, JSON.stringify({ fingerprint: before }));
}

/**
 * Deletes outputs without a source. The compiler never does, so the test of a deleted source would
 * still run.
 */
function sweep(folder) {
  const sources = new Set(modulesOf(folder));
  for (const path of filesBelow(`${folder}/dist`)) {
    const module = path.slice(`${folder}/dist/`.length).replace(OUTPUT, "");
    if (!sources.has(module)) rmSync(join(root, path));
  }
  // The compiler trusts its build info without checking that the outputs exist.
  if (!hasOutputs(folder)) rmSync(join(root, folder, "tsconfig.tsbuildinfo"), { force: true });
}

function isBuilt() {
  if (!existsSync(STAMP) || readJson(STAMP).fingerprint !== fingerprint()) return false;
  return workspaces().every(hasOutputs);
}

function hasOutputs(folder) {
  return modulesOf(folder).every((module) => existsSync(join(root, folder, `dist/${module}.js`)));
}

function modulesOf(folder) {
  return filesBelow(`${folder}/src`)
    .filter((path) => path.endsWith(".ts") && !path.endsWith(".d.ts"))
    .map((path) => path.slice(`${folder}/src/`.length, -".ts".length));
}

function fingerprint() {
  const hash = createHash("sha256");
  const paths = [
    "package-lock.json",
    "tsconfig.json",
    "tsconfig.base.json",
    ...workspaces().flatMap((folder) => [
      // `exports` decides what an import of one package means in another.
      `${folder}/package.json`,
      `${folder}/tsconfig.json`,
      ...filesBelow(`${folder}/src`),
    ]),
  ];
  for (const path of paths) {
    const text = readFileSync(join(root, path));
    hash.update(`${path} ${text.length}\n`).update(text);
  }
  return hash.digest("hex");
}

if (isMain(import.meta.url)) {
  await script(async () => {
    await ensureInstalled();
    await withLock("building", build);
  });
}
