import assert from "node:assert/strict";
import { test } from "node:test";
import {
  LIBRARY,
  read,
  repoFiles,
  resolveImport,
  shippedSources,
  workspaces,
} from "../repo-files.js";
import { type Import, importsOf } from "./source-text.js";

interface Edge extends Import {
  readonly from: string;
  readonly to: string;
}

// Nodes of a quorum are Redis servers: how they are reached, and how keys are named, is the same. What
// the Redis engine decides by, its scripts above all, the quorum has of its own.
const LENT_BY_REDIS = [
  ...["clients/address", "clients/connection", "clients/open", "notifications/notifications"],
  ...["protocol/failure", "protocol/keys", "protocol/shape"],
].map((name) => `/engines/redis/${name}.ts`);

const edges = edgesOf(shippedSources(LIBRARY));

test("recipes import no engine", () => {
  refuse((edge) => isIn(edge.from, "recipes") && isIn(edge.to, "engines"));
});

test("an engine imports neither another engine nor a recipe", () => {
  refuse((edge) => {
    const engine = engineOf(edge.from);
    if (engine === null) return false;
    const other = engineOf(edge.to);
    const lent = engine === "quorum" && LENT_BY_REDIS.some((file) => edge.to.endsWith(file));
    return isIn(edge.to, "recipes") || (other !== null && other !== engine && !lent);
  });
});

test("core imports engines in connect.ts and init.ts only, and there only when they are asked for", () => {
  refuse((edge) => {
    if (isIn(edge.from, "engines") || !isIn(edge.to, "engines")) return false;
    const doors = [`${LIBRARY}/connect.ts`, `${LIBRARY}/init.ts`];
    return !(doors.includes(edge.from) && edge.dynamic);
  });
});

test("engine.ts, the contract, imports nothing", () => {
  refuse((edge) => edge.from === `${LIBRARY}/engine.ts`);
});

test("the front door only re-exports: names, and the types of the contract", () => {
  const rest = read(`${LIBRARY}/index.ts`)
    .replace(/\/\*[\s\S]*?\*\/|\/\/[^\n]*/g, "")
    .replace(/export type \* from "\.\/engine\.js";/, "")
    .replace(/export\s+(type\s+)?\{[^}]*\}\s*from\s*"[^"]+";/g, "");
  assert.equal(rest.trim(), "");
});

test("no relative import leaves its own package", () => {
  const leaving = workspaces().flatMap((folder) =>
    edgesOf(repoFiles(`${folder}/src`).filter((path) => path.endsWith(".ts"))).filter(
      (edge) => edge.specifier.startsWith(".") && !edge.to.startsWith(`${folder}/src/`),
    ),
  );
  assert.deepEqual(leaving.map(show), []);
});

function edgesOf(paths: readonly string[]): Edge[] {
  return paths.flatMap((from) =>
    importsOf(read(from)).map((found) => ({
      ...found,
      from,
      to: found.specifier.startsWith(".") ? resolveImport(from, found.specifier) : found.specifier,
    })),
  );
}

function refuse(forbidden: (edge: Edge) => boolean): void {
  // No edge at all would mean that the scan is broken, and every rule kept by accident.
  assert.ok(edges.length > 0);
  assert.deepEqual(edges.filter(forbidden).map(show), []);
}

function show(edge: Edge): string {
  return `${edge.from} imports ${edge.specifier}`;
}

function isIn(path: string, folder: string): boolean {
  return path.startsWith(`${LIBRARY}/${folder}/`);
}

function engineOf(path: string): string | null {
  return isIn(path, "engines") ? (path.split("/")[4] ?? null) : null;
}
