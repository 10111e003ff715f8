// Writes tables and lists from the code: the engines and the channels in both READMEs, the traits
// in docs/promises.md, and all of docs/engines/README.md. Each is between marks such as <!--
// engines --> and <!-- /engines -->. `node repo-tests/dist/engine-table.js --write` writes them,
// `--check` compares.
import { existsSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { channels } from "holdfast";
import { type EngineFacts, engineFacts, engineNames, type LawNote } from "./engine-facts.js";
import { ENGINES, FENCING, HEADINGS, type Language, PROMISED, wordsOf } from "./engine-words.js";
import { read, root } from "./repo-files.js";

const DAY_MS = 86_400_000;

/** Every page with generated parts, as it should be now. */
export async function freshPages(): Promise<ReadonlyMap<string, string>> {
  const facts = await Promise.all(engineNames().map(engineFacts));
  const order = Object.keys(ENGINES);
  for (const { name } of facts) wordsOf(name);
  const engines = facts.sort((a, b) => order.indexOf(a.name) - order.indexOf(b.name));
  const readme = (path: string, language: Language) => {
    const text = withMarked(read(path), "engines", shortTable(engines, language));
    return withMarked(text, "channels", channelList(language));
  };
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
    const { url, takeIt, sharedBy, init } = wordsOf(name);
    return [
      ...[`[${name}](docs/engines/${name}.md)`, `\`${url}\``, takeIt[language]],
      ...[sharedBy[language], FENCING[traits.fencing][language], init ? "`init`" : "–"],
    ];
  });
  return table(HEADINGS[language], rows);
}

function channelList(language: Language): string {
  const names = Object.keys(channels).map((name) => `\`${name}\``);
  return `${names.join(language === "en" ? ", " : "、")}\n`;
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
  const row = (what: string, say: (facts: EngineFacts) => string) => [what, ...engines.map(say)];
  const yes = (has: boolean) => (has ? "yes" : "no");
  const choice = engines.map(({ name }) => [link(name), wordsOf(name).takeIt.en]);
  const rows = [
    row("connect to", ({ name }) => `\`${wordsOf(name).url}\``),
    row("shared by", ({ name }) => wordsOf(name).sharedBy.en),
    row("before the first use", ({ name }) => (wordsOf(name).init ? "`init`" : "nothing")),
    row("grants end with", ({ traits }) => (traits.expiry === "ttl" ? "their ttl" : "the session")),
    row("ttl", ttl),
    row("ttl in steps of", ({ traits }) => time(traits.ttl.stepMs)),
    row("modes", ({ traits }) => traits.modes.join(", ")),
    row("limits on shared claims (semaphores)", ({ traits }) => yes(traits.limits)),
    row("lock-delay", ({ traits }) => yes(traits.lockDelay)),
    row("fencing", ({ traits }) => `\`${traits.fencing}\``),
    row("tokens rise across", ({ traits }) => FENCING[traits.fencing].en),
    row("tokens a grant can reserve", ({ traits }) => String(traits.tokenRange)),
    row("keeps waiters in a queue", ({ queue }) => yes(queue)),
    row("tells of changes", ({ watch }) => yes(watch)),
  ];
  return `# Engines

Written by \`node repo-tests/dist/engine-table.js --write\` from the traits that each engine exports and from the
harness with which it is held to [the laws](../contract.md).

## Which one

All keep the same contract, so a program changes its engine by its URL, within what the table below says. Locks that
must be *correct* need a [fence](../fencing.md) where the data lives on every engine; without one, prefer an engine that a
majority decides (etcd, ZooKeeper) or that your data is in.

${table(["take", "when"], choice)}
\`init\` is \`npx @holdfast/cli init URL\`, or \`init(url)\` in a program: [what it makes](../command-line.md#init).

## Side by side

${table(["", ...names], rows)}
## The laws

The [laws](../contract.md) are what an engine is tested for, each with a number. Where an engine cannot keep one it is
*excused*, and a test proves that it cannot. Some have nothing to ask of an engine, or of the servers that the test starts;
engines on several servers have more tests, with several servers.

${engines.map(section).join("\n")}`;
}

function section({ name, notes: { excused, notAsked } }: EngineFacts): string {
  const none = excused.length + notAsked.length === 0 ? "\nAll apply, and it keeps all.\n" : "";
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

function time(ms: number): string {
  if (ms === DAY_MS) return "1 day";
  if (ms > DAY_MS) return `${ms / DAY_MS} days`;
  return ms >= 1_000 ? `${ms / 1_000} s` : `${ms} ms`;
}

function table(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |\n`;
  return `${line(headings)}|${"---|".repeat(headings.length)}\n${rows.map(line).join("")}`;
}

if (import.meta.url === pathToFileURL(realpathSync(process.argv[1] ?? "/")).href) {
  const pages = await freshPages();
  const isStale = ([path, text]: [string, string]) =>
    !existsSync(join(root, path)) || read(path) !== text;
  const stale = [...pages].filter(isStale);
  if (process.argv.includes("--write")) {
    for (const [path, text] of stale) writeFileSync(join(root, path), text);
  } else if (stale.length > 0) {
    const names = stale.map(([path]) => path).join(", ");
    console.error(`Stale, run node repo-tests/dist/engine-table.js --write: ${names}`);
    process.exitCode = 1;
  }
}
