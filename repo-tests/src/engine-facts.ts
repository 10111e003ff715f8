// Facts about the engines, read from the compiled library: their traits, and the laws that do not
// apply to them or from which they are excused.
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { EngineTraits } from "holdfast";
import { type Harness, laws, notApplicable } from "holdfast/conformance";
import { LIBRARY, read, repoFiles, root } from "./repo-files.js";

export interface LawNote {
  /** "L4.17 clients whose clocks read differently agree on who holds" */
  readonly law: string;
  readonly why: string;
}

export interface EngineFacts {
  readonly name: string;
  readonly traits: EngineTraits;
  readonly queue: boolean;
  readonly watch: boolean;
  readonly notes: {
    readonly excused: readonly LawNote[];
    readonly notAsked: readonly LawNote[];
  };
}

export function engineNames(): string[] {
  const folders = repoFiles(`${LIBRARY}/engines`).map((path) => path.split("/")[4] ?? "");
  return [...new Set(folders)].sort();
}

export async function engineFacts(name: string): Promise<EngineFacts> {
  const constant = `${name.toUpperCase().replaceAll("-", "_")}_TRAITS`;
  const module = await compiled(name, "engine");
  const traits = module[constant] as EngineTraits | undefined;
  if (traits === undefined) throw new Error(`engines/${name}/engine.ts exports no ${constant}`);
  const source = read(`${LIBRARY}/engines/${name}/engine.ts`);
  return {
    name,
    traits,
    // A facet is an optional member. Law L0.1 checks that the harness declares the same facets.
    queue: /^ {2}readonly queue\b/m.test(source),
    watch: /^ {2}readonly watch\b/m.test(source),
    notes: await notesOf(name),
  };
}

async function notesOf(name: string): Promise<EngineFacts["notes"]> {
  const module = await compiled(name, "test/support/harness.fixture");
  const harness = (module.harness as (folder: string) => Harness)("/nowhere");
  const excuses = harness.excuses ?? [];
  return {
    excused: laws.flatMap(({ id, title }) => {
      const excuse = excuses.find(({ law }) => id === law || id.startsWith(`${law}.`));
      return excuse === undefined ? [] : [{ law: `${id} ${title}`, why: excuse.why }];
    }),
    notAsked: notApplicable(harness).map(({ law: { id, title }, why }) => ({
      law: `${id} ${title}`,
      why,
    })),
  };
}

async function compiled(engine: string, file: string): Promise<Record<string, unknown>> {
  const path = join(root, "packages/holdfast/dist/engines", engine, `${file}.js`);
  return import(pathToFileURL(path).href);
}
