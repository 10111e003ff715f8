import { existsSync } from "node:fs";
import { join, resolve } from "node:path";

export type ServerKind = "redis" | "postgres" | "mysql" | "etcd" | "zookeeper";

// A folder of programs, or one that has such folders, as archives of servers do.
const INSIDE = ["", "bin", "sbin", "scripts", "lib"];

/** Names the folder of the version that tests use instead of the usual one. */
function variableOf(kind: ServerKind): string {
  return `HOLDFAST_SERVER_${kind.toUpperCase()}`;
}

export function isChosen(kind: ServerKind): boolean {
  return (process.env[variableOf(kind)] ?? "") !== "";
}

/**
 * The first of these files that the chosen folder has, or null where none was chosen. A folder without
 * any of them is a mistake: tests of another version than the one asked for would tell nothing.
 */
export function chosen(kind: ServerKind, names: readonly string[]): string | null {
  if (!isChosen(kind)) return null;
  const folder = resolve(process.env[variableOf(kind)]!);
  const paths = names.flatMap((name) => INSIDE.map((inside) => join(folder, inside, name)));
  const found = paths.find((path) => existsSync(path));
  if (found !== undefined) return found;
  throw new Error(
    `${variableOf(kind)} is "${folder}", which has no ${names.join(" and no ")}, nor has a bin, sbin, ` +
      "scripts or lib in it. Name the folder of the server, or unset the variable",
  );
}
