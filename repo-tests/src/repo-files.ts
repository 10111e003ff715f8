import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");

/** The library's sources. */
export const LIBRARY = "packages/holdfast/src";

// Folders with installed, compiled or downloaded files, and git's own.
const NOT_OURS = new Set(["node_modules", "dist", ".git", ".setup"]);
// Copied from elsewhere in the repository when a package is packed: setup/pages.mjs.
const COPIED = /^packages\/(holdfast\/(docs|[^/]+\.md|LICENSE)|cli\/(docs|LICENSE))$/;
// Files beside the code that are never packed: tests, their child processes, and wrong engines.
const UNSHIPPED = /\.(test|fixture|child)\.ts$|\/wrong-engines\//;

/** Every file of the repository below a folder, relative to the root. */
export function repoFiles(folder = ""): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
    // In a linked work tree .git is a file.
    if (COPIED.test(path) || NOT_OURS.has(entry.name)) return [];
    if (entry.isDirectory()) return repoFiles(path);
    return entry.isFile() && !entry.name.endsWith(".tsbuildinfo") ? [path] : [];
  });
}

/** The TypeScript below a folder that reaches users. */
export function shippedSources(folder: string): string[] {
  return repoFiles(folder).filter((path) => path.endsWith(".ts") && !UNSHIPPED.test(path));
}

export function read(path: string): string {
  return readFileSync(join(root, path), "utf8");
}

export function readJson<T>(path: string): T {
  return JSON.parse(read(path)) as T;
}

/** What one subpath of a package leads to. */
export interface Entry {
  readonly types: string;
  readonly default: string;
}

/** A subpath for other packages of this repository: it exists only under a condition of ours. */
export interface InternalEntry {
  readonly "holdfast-internal": Entry;
}

export interface Manifest {
  readonly name: string;
  readonly private?: boolean;
  readonly workspaces?: readonly string[];
  readonly exports?: Readonly<Record<string, string | Entry | InternalEntry>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta?: Readonly<Record<string, { optional?: boolean }>>;
}

/** The subpaths of a package that a user can import, without "./package.json". */
export function publicEntries({ exports = {} }: Manifest): [subpath: string, entry: Entry][] {
  return Object.entries(exports).flatMap(([subpath, entry]): [string, Entry][] =>
    typeof entry === "object" && "default" in entry ? [[subpath, entry]] : [],
  );
}

/** The folders that package.json lists as workspaces. */
export function workspaces(): readonly string[] {
  return readJson<Manifest>("package.json").workspaces ?? [];
}

/** "packages/holdfast/src/a/b.ts" + "../c.js" → "packages/holdfast/src/c.ts" */
export function resolveImport(from: string, specifier: string): string {
  const absolute = join(root, from, "..", specifier);
  return relative(root, absolute).replace(/\.js$/, ".ts");
}
