import "./node-version.mjs";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { withLock } from "./lock.mjs";
import { excerpt, runQuietly } from "./progress.mjs";
import { isMain, SetupError, script } from "./script.mjs";
import { readJson, root, stateFolder, workspaces } from "./workspace.mjs";

const STAMP = join(stateFolder, "installed.json");
const TIMEOUT_MS = 15 * 60_000;
// The fields that npm acts on. A change of `exports` or `scripts` needs no new installation.
const INSTALL_FIELDS = [
  "name",
  "version",
  "bin",
  "workspaces",
  "engines",
  "overrides",
  "dependencies",
  "devDependencies",
  "optionalDependencies",
  "peerDependencies",
  "peerDependenciesMeta",
];

/** Installs the packages of package-lock.json, unless they are installed already. */
export async function ensureInstalled() {
  if (isInstalled()) return;
  await withLock("installing packages", async () => {
    // The previous holder of the lock may have installed them.
    if (isInstalled()) return;
    // npm ci starts by deleting node_modules, so from here until it ends nothing is installed.
    rmSync(STAMP, { force: true });
    const [file, ...args] = npmCommand();
    const { code, output } = await runQuietly(
      "installing packages",
      file,
      [...args, "ci", "--include=dev"],
      { timeoutMs: TIMEOUT_MS },
    );
    if (code !== 0) {
      throw new SetupError(
        `${excerpt(output)}\n\nnpm ci failed with exit code ${code}; see above.`,
      );
    }
    mkdirSync(stateFolder, { recursive: true });
    writeFileSync(STAMP, JSON.stringify({ fingerprint: fingerprint() }));
  });
}

/** The command of the npm that called us, or of the one in the PATH. */
export function npmCommand() {
  const cli = process.env.npm_execpath;
  if (cli !== undefined && basename(cli) === "npm-cli.js") return [process.execPath, cli];
  return ["npm"];
}

function isInstalled() {
  // npm writes this file last, so it exists only in a complete node_modules.
  if (!existsSync(join(root, "node_modules/.package-lock.json")) || !existsSync(STAMP))
    return false;
  return readJson(STAMP).fingerprint === fingerprint();
}

function fingerprint() {
  const hash = createHash("sha256");
  hash.update(`${process.version} ${process.versions.modules} ${process.platform} ${process.arch}`);
  hash.update(readFileSync(join(root, "package-lock.json")));
  for (const folder of ["", ...workspaces()]) {
    const manifest = readJson(join(root, folder, "package.json"));
    hash.update(JSON.stringify([folder, INSTALL_FIELDS.map((field) => manifest[field] ?? null)]));
  }
  return hash.digest("hex");
}

if (isMain(import.meta.url)) await script(ensureInstalled);
