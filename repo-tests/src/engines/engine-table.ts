// Tables that are written from what the code says about itself: the engines in both READMEs, the traits in
// docs/promises.md, and all of docs/engines/README.md. Each table in a README stands between marks such as
// <!-- engines --> and <!-- /engines -->.
import type { EngineTraits } from "holdfast";
import { read } from "../repo-files.js";
import { type EngineFacts, engineFacts, engineNames, type LawNote } from "./engine-facts.js";
import { ENGINES, FENCING, HEADINGS, type Language, PROMISED, wordsOf } from "./engine-words.js";

const DAY_MS = 86_400_000;

interface Row {
  readonly what: string;
  /** The trait that the row shows, if it shows one. */
  readonly trait?: keyof EngineTraits;
  readonly say: (facts: EngineFacts) => string;
}

/** The rows of the table that compares all engines. */
export const ROWS: readonly Row[] = [
  { what: "connect to", say: ({ name }) => `\`${wordsOf(name).url}\`` },
  { what: "shared by", say: ({ name }) => wordsOf(name).sharedBy.en },
  { what: "before the first use", say: ({ name }) => (wordsOf(name).init ? "`init`" : "nothing") },
  {
    what: "grants end with",
    trait: "expiry",
    say: ({ traits }) => (traits.expiry === "ttl" ? "their ttl" : "the session"),
  },
  { what: "ttl", trait: "ttl", say: ttl },
  { what: "ttl in steps of", trait: "ttl", say: ({ traits }) => time(traits.ttl.stepMs) },
  { what: "modes", trait: "modes", say: ({ traits }) => traits.modes.join(", ") },
  {
    what: "limits on shared claims (semaphores)",
    trait: "limits",
    say: ({ traits }) => yesOrNo(traits.limits),
  },
  { what: "lock-delay", trait: "lockDelay", say: ({ traits }) => yesOrNo(traits.lockDelay) },
  { what: "fencing", trait: "fencing", say: ({ traits }) => `\`${traits.fencing}\`` },
  {
    what: "tokens rise across",
    trait: "fencing",
    say: ({ traits }) => FENCING[traits.fencing].en,
  },
  {
    what: "tokens a grant can reserve",
    trait: "tokenRange",
    say: ({ traits }) => String(traits.tokenRange),
  },
  {
    what: "a grant can outlive its process (`once`)",
    trait: "leaves",
    say: ({ traits }) => yesOrNo(traits.leaves),
  },
  { what: "keeps waiters in a queue", say: ({ queue }) => yesOrNo(queue) },
  { what: "tells holders of a revocation at once", say: ({ watch }) => yesOrNo(watch) },
];

/** Traits without a row, by the reason. */
export const UNTOLD: Partial<Record<keyof EngineTraits, string>> = {
  remote: "only the core's event loop needs it",
};

/** Every page with generated parts, as it should be now. */
export async function freshPages(): Promise<ReadonlyMap<string, string>> {
  const facts = await Promise.all(engineNames().map(engineFacts));
  const order = Object.keys(ENGINES);
  for (const { name } of facts) wordsOf(name);
  const engines = facts.sort((a, b) => order.indexOf(a.name) - order.indexOf(b.name));
  const readme = (path: string, language: Language) =>
    withMarked(read(path), "engines", shortTable(engines, language));
  return new Map([
    ["README.md", readme("README.md", "en")],
    ["README.zh-CN.md", readme("README.zh-CN.md", "zh")],
    ["docs/promises.md", withMarked(read("docs/promises.md"), "fencing", fencingTable(engines))],
    ["docs/engines/README.md", page(engines)],
  ]);
}

export function withMarked(markdown: string, mark: string, text: string): string {
  const marked = new RegExp(`(<!-- ${mark}[^>]*-->\\n)[\\s\\S]*?(<!-- /${mark} -->)`);
  if (!marked.test(markdown)) throw new Error(`no place between <!-- ${mark} --> marks`);
  return markdown.replace(marked, (_, start: string, end: string) => `${start}${text}${end}`);
}

function shortTable(engines: readonly EngineFacts[], language: Language): string {
  const rows = engines.map(({ name, traits }) => {
    const { url, takeIt, init } = wordsOf(name);
    return [
      ...[`[${name}](docs/engines/${name}.md)`, takeIt[language], `\`${url}\``],
      ...[FENCING[traits.fencing][language], init ? "`init`" : "–"],
    ];
  });
  return table(HEADINGS[language], rows);
}

function fencingTable(engines: readonly EngineFacts[]): string {
  const rows = Object.entries(PROMISED).map(([fencing, across]) => {
    const having = engines.filter(({ traits }) => traits.fencing === fencing);
    return [`\`${fencing}\``, across, having.map(({ name }) => name).join(", ")];
  });
  return table(["trait", "tokens rise across", "engine"], rows);
}

function page(engines: readonly EngineFacts[]): string {
  const link = (name: string) => `[${name}](${name}.md)`;
  const names = engines.map(({ name }) => link(name));
  const choice = engines.map(({ name }) => [link(name), wordsOf(name).takeIt.en]);
  const rows = ROWS.map(({ what, say }) => [what, ...engines.map(say)]);
  return `# Engines

The facts on this page come from the traits that each engine exports, and from the test harness of each engine.

## Which one

First ask what the lock is for.

- **Efficiency**: the lock saves work, and doing the work twice does no harm. Take the engine that you already run.
- **Correctness**: two writers would damage data. Use a [fence](../fencing.md) where the data lives, on every engine. If the
  data cannot be fenced, take the engine of the database that holds the data, or an engine that decides by consensus (etcd,
  ZooKeeper).

${table(["take", "when"], choice)}
All engines keep the same contract. So a program changes its engine by its URL, within the differences of the next table.

Some engines need one step before the first use: \`npx @holdfast/cli init URL\`, or \`init(url)\` in a program.
[What init makes](../command-line.md#init).

## Side by side

${table(["", ...names], rows)}
## The laws

The [laws](../contract.md) are numbered tests that every engine must pass. An engine that cannot keep a law is *excused*,
and a test proves that it cannot. Some laws do not apply to an engine, or need something that its test harness cannot do.
Engines with several servers have more tests, which disturb single servers.

${engines.map(section).join("\n")}`;
}

function section({ name, notes: { excused, notAsked } }: EngineFacts): string {
  const none = excused.length + notAsked.length === 0 ? "\nIt keeps all laws.\n" : "";
  const excuses = excused.map(({ law, why }) => `- Excused from ${law}: *${why}*\n`);
  const reasons = [...groupedByWhy(notAsked)].map(
    ([why, laws]) => `- Not asked, because *${why}*: ${laws.join(", ")}\n`,
  );
  return `### ${name}\n${none}\n${[...excuses, ...reasons].join("")}`;
}

/** The laws' numbers by the reason why they are not asked, in the order of the laws. */
function groupedByWhy(notes: readonly LawNote[]): ReadonlyMap<string, string[]> {
  const groups = new Map<string, string[]>();
  for (const { law, why } of notes) {
    const [id = ""] = law.split(" ");
    const known = groups.get(why);
    if (known === undefined) groups.set(why, [id]);
    else known.push(id);
  }
  return groups;
}

function ttl({ traits }: EngineFacts): string {
  return `${time(traits.ttl.minMs)} to ${time(traits.ttl.maxMs)}`;
}

function yesOrNo(has: boolean): string {
  return has ? "yes" : "no";
}

function time(ms: number): string {
  if (ms === DAY_MS) return "1 day";
  if (ms > DAY_MS) return `${ms / DAY_MS} days`;
  return ms >= 1_000 ? `${ms / 1_000} s` : `${ms} ms`;
}

function table(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |\n`;
  return `${line(headings)}|${"---|".repeat(headings.length)}\n${rows.map(line).join("")}`;
}
