// What each engine needs in the repository, beside its code. CONTRIBUTING.md has the same as steps.
import { type Entry, LIBRARY } from "../repo-files.js";

/** The repository as these checks see it. */
export interface Repository {
  has(path: string): boolean;
  read(path: string): string;
}

interface Step {
  /** What to do if it was not done. */
  readonly todo: string;
  isDone(): boolean;
}

/** The name of the constant by which an engine says what it can do. */
export function traitsConstant(engine: string): string {
  return `${engine.toUpperCase().replaceAll("-", "_")}_TRAITS`;
}

/** What is still to do for an engine: one sentence each. */
export function stepsLeft(engine: string, { has, read }: Repository): string[] {
  const home = `${LIBRARY}/engines/${engine}`;
  const contains = (path: string, pattern: RegExp) => has(path) && pattern.test(read(path));
  const traits = traitsConstant(engine);
  const index = `${home}/index.ts`;
  const code = `${home}/engine.ts`;
  const harness = `${home}/test/support/harness.fixture.ts`;
  const laws = `${home}/test/conformance/conformance.test.ts`;
  const page = `docs/engines/${engine}.md`;
  const factory = `${camelCase(engine)}Engine`;
  const steps: Step[] = [
    {
      todo: `write ${index}: it exports the factory, its options, and what connect.ts calls with a URL`,
      isDone: () => has(index),
    },
    {
      todo: `write ${code}, and export from it: const ${traits}: EngineTraits`,
      isDone: () => contains(code, new RegExp(`^export const ${traits}\\b`, "m")),
    },
    {
      todo: `write ${harness}, and export from it: function harness(): Harness, which starts nothing`,
      isDone: () => contains(harness, /^export (function|const) harness\b/m),
    },
    {
      todo: `write ${laws}: it starts the server and calls checkLaws with the harness`,
      isDone: () => has(laws),
    },
    {
      todo: `add the scheme of its URL to ${LIBRARY}/connect.ts`,
      isDone: () => contains(`${LIBRARY}/connect.ts`, new RegExp(`"./engines/${engine}/index.js"`)),
    },
    ...["known-options", "handed-in"].map((name) => {
      const path = `${LIBRARY}/core/input/${name}.test.ts`;
      return {
        todo: `add rows for ${factory} to ${path}: what it says about wrong options`,
        isDone: () => contains(path, new RegExp(`\\b${factory}\\b`)),
      };
    }),
    {
      todo: `add "./${engine}" to the exports in packages/holdfast/package.json: ${JSON.stringify(entryOf(engine))}`,
      isDone: () => isExported(engine, read("packages/holdfast/package.json")),
    },
    {
      todo: `write ${page}, with the headings of the other pages`,
      isDone: () => has(page),
    },
    {
      todo: `add a row for engines/${engine}.md to the table "Engines" in docs/README.md`,
      isDone: () => contains("docs/README.md", new RegExp(`\\(engines/${engine}\\.md\\) \\|`)),
    },
    {
      todo:
        `add the words for "${engine}" to repo-tests/src/engines/engine-words.ts, and run ` +
        "npm run write",
      isDone: () =>
        contains("repo-tests/src/engines/engine-words.ts", new RegExp(`^ {2}${engine}: {`, "m")),
    },
    {
      todo: `add a line about ${engine} to CHANGELOG.md`,
      isDone: () => contains("CHANGELOG.md", new RegExp(engine, "i")),
    },
  ];
  return steps.filter((step) => !step.isDone()).map(({ todo }) => todo);
}

function camelCase(name: string): string {
  return name.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase());
}

function entryOf(engine: string): Entry {
  const target = `./dist/engines/${engine}/index`;
  return { types: `${target}.d.ts`, default: `${target}.js` };
}

function isExported(engine: string, manifest: string): boolean {
  const { exports = {} } = JSON.parse(manifest) as { exports?: Record<string, unknown> };
  return JSON.stringify(exports[`./${engine}`]) === JSON.stringify(entryOf(engine));
}
