// Facts about the engines, read from the compiled library: their traits, and the laws that do not
// apply to them or from which they are excused.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { EngineTraits } from "holdfast";
import { type Harness, laws, notApplicable } from "holdfast/conformance";
import { LIBRARY, read, repoFiles, root } from "../repo-files.js";
import { traitsConstant } from "./engine-steps.js";

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
  const constant = traitsConstant(name);
  const module = await compiled(name, "engine");
  const traits = module[constant] as EngineTraits | undefined;
  if (traits === undefined) {
    throw new Error(`engines/${name}/engine.ts must export its traits as ${constant}`);
  }
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
  const file = "test/support/harness.fixture";
  const { harness: make } = await compiled(name, file);
  const wanted = `engines/${name}/${file}.ts must export function harness(): Harness`;
  if (typeof make !== "function") throw new Error(wanted);
  const harness = declared(make as (folder: string) => Harness, wanted);
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

/** Asks a harness what it declares. The laws ask the same before any server has started. */
function declared(make: (folder: string) => Harness, wanted: string): Harness {
  try {
    const harness = make("/nowhere");
    notApplicable(harness);
    return harness;
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    const rule = "whose members can be read before a server has started";
    throw new Error(`${wanted}, ${rule}; it failed: ${why}`, { cause });
  }
}

async function compiled(engine: string, file: string): Promise<Record<string, unknown>> {
  const path = join(root, "packages/holdfast/dist/engines", engine, `${file}.js`);
  if (!existsSync(path)) throw new Error(`write engines/${engine}/${file}.ts, and build`);
  return import(pathToFileURL(path).href);
}
