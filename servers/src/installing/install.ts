import { spawnSync } from "node:child_process";
import { accessSync, constants, existsSync, readdirSync, statSync } from "node:fs";
import { delimiter, join } from "node:path";
import { CATALOGUE, type CatalogueItem, type Wanted } from "./catalogue.js";
import { chosen } from "./chosen.js";

const APT_TIMEOUT_MS = 10 * 60_000;
// Daemons are often outside the PATH. `*` stands for a version, and the newest is used.
const USUAL_FOLDERS = [
  "/usr/local/bin",
  "/usr/local/sbin",
  "/usr/bin",
  "/usr/sbin",
  "/opt/homebrew/bin",
  "/usr/lib/postgresql/*/bin",
  "/usr/pgsql-*/bin",
  "/opt/homebrew/opt/postgresql@*/bin",
];

/** The path of a program in the PATH or in the usual folders of servers, or null. */
export function findBinary(
  name: string,
  folders: readonly string[] = searchFolders(),
): string | null {
  for (const folder of folders) {
    const path = join(folder, name);
    if (isProgram(path)) return path;
  }
  return null;
}

/**
 * The path of an item. Installs its package if needed, or throws with the command to run by hand.
 */
export function ensure(thing: CatalogueItem): string {
  const found = find(CATALOGUE[thing]);
  if (found !== null) return found;
  install([thing]);
  return find(CATALOGUE[thing])!;
}

/** Installs everything in the catalogue at once. Returns the packages that it installed. */
export function ensureAll(): readonly string[] {
  const things = Object.keys(CATALOGUE) as CatalogueItem[];
  return install(things.filter((thing) => find(CATALOGUE[thing]) === null));
}

function install(things: readonly CatalogueItem[]): readonly string[] {
  if (things.length === 0) return [];
  const packages = [...new Set(things.map((thing) => CATALOGUE[thing].package))];
  aptInstall(things, packages);
  const missing = things.filter((thing) => find(CATALOGUE[thing]) === null);
  if (missing.length === 0) return packages;
  throw new Error(`installed ${packages.join(", ")}, which brought no ${missing.join(", ")}`);
}

function find(wanted: Wanted): string | null {
  const choice = wanted.server && chosen(wanted.server.kind, wanted.server.names);
  if (choice) return choice;
  if ("binary" in wanted) return findBinary(wanted.binary);
  if ("file" in wanted) return existsSync(wanted.file) ? wanted.file : null;
  // Not the first Python in the PATH: Debian's packages work with Debian's Python only.
  const python = "/usr/bin/python3";
  return spawnSync(python, ["-c", `import ${wanted.module}`]).status === 0 ? python : null;
}

/** The folders of the PATH, then the usual folders with `*` replaced by existing names. */
export function searchFolders(
  path = process.env.PATH ?? "",
  usual: readonly string[] = USUAL_FOLDERS,
): string[] {
  const folders = [...path.split(delimiter), ...usual.flatMap(expand)];
  return [...new Set(folders.filter((folder) => folder !== ""))];
}

function expand(pattern: string): string[] {
  const star = pattern.indexOf("*");
  if (star < 0) return [pattern];
  const parent = pattern.slice(0, pattern.lastIndexOf("/", star));
  const [before = "", after = ""] = pattern.slice(parent.length + 1).split("*");
  return namesIn(parent)
    .filter((name) => name.startsWith(before))
    .sort((a, b) => b.localeCompare(a, "en", { numeric: true }))
    .map((name) => `${parent}/${name}${after}`);
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    // This machine does not have this folder.
    return [];
  }
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function aptInstall(things: readonly CatalogueItem[], packages: readonly string[]): void {
  const isRoot = process.getuid?.() === 0;
  const apt = isRoot ? "apt-get" : "sudo apt-get";
  const byHand = `${apt} update && ${apt} install -y --no-install-recommends ${packages.join(" ")}`;
  const needed = `needed and not found: ${things.join(", ")}. Install that with\n  ${byHand}`;
  if (findBinary("apt-get") === null) throw new Error(needed);
  const shell = ["sh", "-c", APT_SCRIPT, "sh", ...packages];
  const [file = "", ...args] = isRoot ? shell : ["sudo", "-n", ...shell];
  const result = spawnSync(file, args, { encoding: "utf8", timeout: APT_TIMEOUT_MS });
  if (result.status === 0) return;
  const said = `${result.stdout ?? ""}${result.stderr ?? ""}${result.error?.message ?? ""}`;
  throw new Error(`${needed}\nTrying that here failed:\n${said.trim().slice(-2_000)}`);
}

// Debian starts a server as soon as its package is unpacked, unless policy-rc.d forbids it. Ours
// exists only during the installation, and flock keeps two installers from deleting each other's.
// An installer that was killed leaves its file, which has a mark. Package lists are fetched only
// when needed.
const APT_SCRIPT = `
set -eu
exec 9>/var/lock/holdfast-apt.lock
flock -w 600 9
policy=/usr/sbin/policy-rc.d
if [ -e "$policy" ] && grep -q '^# holdfast servers$' "$policy"; then rm -f "$policy"; fi
if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT
  trap 'exit 1' HUP INT TERM
  printf '#!/bin/sh\\n# holdfast servers\\nexit 101\\n' >"$policy"
  chmod 755 "$policy"
fi
export DEBIAN_FRONTEND=noninteractive
install() {
  apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "$@" 9>&-
}
install "$@" || { apt-get -o DPkg::Lock::Timeout=300 update 9>&-; install "$@"; }
`;
