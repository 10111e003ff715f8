import { existsSync } from "node:fs";
import { join, resolve } from "node:path";

export type ServerKind = "redis" | "postgres" | "mysql" | "etcd" | "zookeeper";

// The folder itself, or the folders inside it in which archives of servers keep programs.
const INSIDE = ["", "bin", "sbin", "scripts", "lib"];

/** The variable that names the folder of another server version for the tests. */
function variableOf(kind: ServerKind): string {
  return `HOLDFAST_SERVER_${kind.toUpperCase()}`;
}

export function isChosen(kind: ServerKind): boolean {
  return (process.env[variableOf(kind)] ?? "") !== "";
}

/**
 * The first of these files in the chosen folder, or null if no folder was chosen. A folder without
 * any of them is an error, because the tests would run against another version than requested.
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
