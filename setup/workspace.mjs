import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("..", import.meta.url)).replace(/[\\/]$/, "");

/**
 * Stamps, locks and downloads of the set-up. It can be deleted at any time; that only costs time.
 */
export const stateFolder = join(root, ".setup");

/**
 * The Node option that opens `holdfast/internal/…`, which the simulator imports. The published
 * package has these subpaths under this condition only, so that no user imports them by accident.
 */
export const INTERNAL_CONDITION = "--conditions=holdfast-internal";

/** The folders that package.json lists as workspaces. All scripts here use this list. */
export function workspaces() {
  return readJson(join(root, "package.json")).workspaces;
}

export function readJson(path) {
  return JSON.parse(readFileSync(path, "utf8"));
}

/**
 * Every file below a folder, relative to the root and sorted. Empty if the folder does not exist.
 */
export function filesBelow(folder) {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .sort();
}
