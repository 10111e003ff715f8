// Everything in the pages that is written by a program. `npm run write` builds and runs this file.
import { existsSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { API_RECORD, publicApi } from "./api.js";
import { freshPages } from "./engines/engine-table.js";
import { freshReadmes, RESULTS, type Results } from "./pages/readme-numbers.js";
import { read, readJson, root } from "./repo-files.js";
import { freshSamples } from "./samples.js";

type Pages = ReadonlyMap<string, string>;

interface ContractPage {
  withLaws(page: string, groups: unknown): string;
}

const CONTRACT = "docs/contract.md";
const CONFORMANCE = "packages/holdfast/dist/conformance";

/** By what is written: the pages that have it, as they should be now. Several write into README.md. */
export const GENERATORS: Readonly<Record<string, () => Pages | Promise<Pages>>> = {
  "samples of examples/": freshSamples,
  "tables of engines": freshPages,
  "numbers of the benchmark": () => freshReadmes(readJson<Results>(RESULTS)),
  "public names": async () => new Map([[API_RECORD, await publicApi()]]),
  laws: async () => {
    const { withLaws } = await load<ContractPage>("contract-page.js");
    const { groups } = await load<{ groups: unknown }>("index.js");
    return new Map([[CONTRACT, withLaws(read(CONTRACT), groups)]]);
  },
};

/** The pages that differ from what they should be, with the first line that does. */
export async function staleOf(generate: () => Pages | Promise<Pages>): Promise<Pages> {
  const fresh = [...(await generate())].filter(([path, text]) => text !== current(path));
  return new Map(fresh);
}

/** Where a page differs first: "docs/a.md:12: has …, should have …". */
export function firstDifference(path: string, text: string): string {
  const [has, wants] = [current(path).split("\n"), text.split("\n")];
  const at = wants.findIndex((line, i) => line !== has[i]);
  const line = at < 0 ? wants.length : at;
  return `${path}:${line + 1}: has ${quoted(has[line])}, should have ${quoted(wants[line])}`;
}

function current(path: string): string {
  return existsSync(join(root, path)) ? read(path) : "";
}

function quoted(line: string | undefined): string {
  return line === undefined ? "no more lines" : JSON.stringify(line);
}

function load<T>(file: string): Promise<T> {
  return import(pathToFileURL(join(root, CONFORMANCE, file)).href);
}

if (import.meta.url === pathToFileURL(realpathSync(process.argv[1] ?? "/")).href) {
  let written = 0;
  for (const [what, generate] of Object.entries(GENERATORS)) {
    for (const [path, text] of await staleOf(generate)) {
      writeFileSync(join(root, path), text);
      console.log(`${path}: ${what}`);
      written++;
    }
  }
  if (written === 0) console.log("All generated pages are up to date.");
}
