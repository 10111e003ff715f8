import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { builtinModules } from "node:module";
import { join } from "node:path";
import { test } from "node:test";
import {
  LIBRARY,
  type Manifest,
  publicEntries,
  read,
  readJson,
  root,
  shippedSources,
  workspaces,
} from "../repo-files.js";
import { importsOf } from "../source/source-text.js";

const library = readJson<Manifest>("packages/holdfast/package.json");

test("every target of the exports map exists, types first", () => {
  for (const [subpath, target] of Object.entries(library.exports ?? {})) {
    const entry =
      typeof target === "object" && "holdfast-internal" in target
        ? target["holdfast-internal"]
        : target;
    if (typeof entry === "object") assert.deepEqual(Object.keys(entry), ["types", "default"]);
    for (const file of typeof entry === "string" ? [entry] : Object.values(entry)) {
      assert.ok(existsSync(join(root, "packages/holdfast", file)), `${subpath} names ${file}`);
    }
  }
});

test("a subpath is internal exactly if its name says so", () => {
  const isInternal = (subpath: string) => subpath.startsWith("./internal/");
  const entries = publicEntries(library).map(([subpath]) => subpath);
  assert.deepEqual(entries.filter(isInternal), []);
  const others = Object.keys(library.exports ?? {}).filter((path) => !entries.includes(path));
  assert.deepEqual(
    others.filter((path) => !isInternal(path)),
    ["./package.json"],
  );
});

test("the library's peers are the packages that it imports, and all are optional", () => {
  const peers = Object.keys(library.peerDependencies ?? {}).sort();
  assert.deepEqual(packagesImported(LIBRARY, library.name), peers);
  for (const peer of peers) {
    assert.equal(library.peerDependenciesMeta?.[peer]?.optional, true, `${peer} is optional`);
  }
  assert.equal(library.dependencies, undefined, "the library has no dependency of its own");
});

test("published packages declare what they import", () => {
  for (const folder of workspaces()) {
    const manifest = readJson<Manifest>(`${folder}/package.json`);
    if (manifest.private === true) continue;
    const declared = { ...manifest.dependencies, ...manifest.peerDependencies };
    const undeclared = packagesImported(`${folder}/src`, manifest.name).filter(
      (name) => !(name in declared),
    );
    assert.deepEqual(undeclared, [], folder);
  }
});

/** Names of other packages imported by what ships: statically, by import() or by require(). */
function packagesImported(folder: string, self: string): string[] {
  const names = shippedSources(folder)
    .flatMap((path) => importsOf(read(path)))
    .map(({ specifier }) => specifier)
    .filter((specifier) => !specifier.startsWith(".") && !specifier.startsWith("node:"))
    .map((specifier) => specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/"))
    .filter((name) => name !== self && !builtinModules.includes(name));
  return [...new Set(names)].sort();
}
