// docs/api.txt lists the public names of every subpath, so that a diff shows every change of the
// API.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { type Manifest, publicEntries, readJson, root } from "./repo-files.js";

export const API_RECORD = "docs/api.txt";

const LIBRARY = join(root, "packages/holdfast");
const HEADER = "Public names by subpath. Written by `npm run write`.\n";
const CLAUSE = /^export (type )?\{([^}]*)\}/gm;
const STAR = /^export (?:type )?\* from "(.+)";/gm;
const DECLARATION =
  /^export (?:declare )?(?:abstract )?(?:type|interface|class|function|const|let|enum) (\w+)/gm;

export async function publicApi(): Promise<string> {
  const manifest = readJson<Manifest>("packages/holdfast/package.json");
  let text = HEADER;
  for (const [subpath, target] of publicEntries(manifest)) {
    const module: object = await import(pathToFileURL(join(LIBRARY, target.default)).href);
    const values = Object.keys(module).sort();
    const types = [...namesIn(join(LIBRARY, target.types))].filter((name) => !(name in module));
    text += `\n${subpath.replace(".", "holdfast")}\n`;
    for (const name of values) text += `  ${name}\n`;
    for (const name of types.sort()) text += `  type ${name}\n`;
  }
  return text;
}

/** The names that a compiled declaration file exports, followed through `export *`. */
function namesIn(path: string): Set<string> {
  const text = readFileSync(path, "utf8");
  const names = new Set<string>();
  for (const [, , clause = ""] of text.matchAll(CLAUSE)) {
    for (const entry of clause.split(",")) {
      const name = entry.trim().split(/\s+/).at(-1);
      if (name) names.add(name);
    }
  }
  for (const [, name = ""] of text.matchAll(DECLARATION)) names.add(name);
  for (const [, from = ""] of text.matchAll(STAR)) {
    const target = join(dirname(path), from.replace(/\.js$/, ".d.ts"));
    for (const name of namesIn(target)) names.add(name);
  }
  return names;
}
