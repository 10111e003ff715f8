import { spawnSync } from "node:child_process";
import { accessSync, constants, existsSync, readdirSync, statSync } from "node:fs";
import { delimiter, join } from "node:path";

const APT_TIMEOUT_MS = 10 * 60_000;
// Daemons live outside many people's PATH; `*` stands for a version, and the newest wins.
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

export interface Wanted {
  readonly binary: string;
  /** The Debian package that brings it. */
  readonly package: string;
}

/** The path of a program in the PATH or where servers usually are, or null. */
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

/** Finds a server's program, or installs its package. Throws with the command to run by hand. */
export function ensureBinary(wanted: Wanted): string {
  const found = findBinary(wanted.binary);
  if (found !== null) return found;
  aptInstall(wanted);
  const installed = findBinary(wanted.binary);
  if (installed !== null) return installed;
  throw new Error(`package ${wanted.package} was installed, but brought no ${wanted.binary}`);
}

/** Makes sure of a file that a Debian package brings, such as a Java library. */
export function ensureFile(path: string, debianPackage: string): string {
  if (!existsSync(path)) aptInstall({ binary: path, package: debianPackage });
  if (existsSync(path)) return path;
  throw new Error(`package ${debianPackage} was installed, but brought no ${path}`);
}

/** Debian's own Python with this module, whose package is installed if need be. Gives its path. */
export function ensurePython(module: string, debianPackage: string): string {
  // Not the first in the PATH: Debian's packages are for Debian's Python alone.
  const python = "/usr/bin/python3";
  const imports = () => spawnSync(python, ["-c", `import ${module}`]).status === 0;
  if (imports()) return python;
  aptInstall({ binary: `Python's module ${module}`, package: debianPackage });
  if (imports()) return python;
  throw new Error(`package ${debianPackage} was installed, but ${python} cannot import ${module}`);
}

/** The PATH, then the usual folders, with `*` replaced by what is there. */
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
    // A usual folder that this machine does not have.
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

function aptInstall(wanted: Wanted): void {
  const isRoot = process.getuid?.() === 0;
  const apt = isRoot ? "apt-get" : "sudo apt-get";
  const byHand = `${apt} update && ${apt} install -y --no-install-recommends ${wanted.package}`;
  const needed = `${wanted.binary} is needed and was not found. Install it with\n  ${byHand}`;
  if (findBinary("apt-get") === null) throw new Error(needed);
  const shell = ["sh", "-c", APT_SCRIPT, "sh", wanted.package];
  const [file = "", ...args] = isRoot ? shell : ["sudo", "-n", ...shell];
  const result = spawnSync(file, args, { encoding: "utf8", timeout: APT_TIMEOUT_MS });
  if (result.status === 0) return;
  const said = `${result.stdout ?? ""}${result.stderr ?? ""}${result.error?.message ?? ""}`;
  throw new Error(`${needed}\nTrying that here failed:\n${said.trim().slice(-2_000)}`);
}

// Debian starts a server as soon as its package is unpacked, unless policy-rc.d forbids it. Ours is
// there only meanwhile, and flock keeps two installers from taking away each other's. One that was
// killed leaves its file, known by its mark. Package lists are fetched only when they are needed.
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
  apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "$1" 9>&-
}
install "$1" || { apt-get -o DPkg::Lock::Timeout=300 update 9>&-; install "$1"; }
`;
