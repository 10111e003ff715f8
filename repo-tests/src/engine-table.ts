// The tables of engines, written from what the engines say of themselves: between the marks
// <!-- engines --> and <!-- /engines --> of both READMEs, and all of docs/engines/README.md.
// `node repo-tests/dist/engine-table.js --write` writes them, `--check` compares.
import { existsSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type EngineFacts, engineFacts, engineNames, type LawNote } from "./engine-facts.js";
import { read, root } from "./repo-files.js";

type Language = "en" | "zh";
type Words = Readonly<Record<Language, string>>;

const MARKED = /(<!-- engines[^>]*-->\n)[\s\S]*?(<!-- \/engines -->)/;
const DAY_MS = 86_400_000;

/** What no trait can say: where to connect, and who meets there. */
const ENGINES: Readonly<Record<string, { readonly url: string; readonly sharedBy: Words }>> = {
  etcd: {
    url: "etcd://127.0.0.1:2379",
    sharedBy: { en: "all clients of one etcd cluster", zh: "同一个 etcd 集群的所有客户端" },
  },
  memory: { url: "memory:", sharedBy: { en: "one process", zh: "单个进程" } },
  sqlite: { url: "sqlite:locks.db", sharedBy: { en: "one host", zh: "单台主机" } },
  mysql: {
    url: "mysql://app@127.0.0.1/database",
    sharedBy: {
      en: "all clients of one MySQL or MariaDB",
      zh: "同一个 MySQL 或 MariaDB 的所有客户端",
    },
  },
  postgres: {
    url: "postgres://app@127.0.0.1/database",
    sharedBy: { en: "all clients of one PostgreSQL", zh: "同一个 PostgreSQL 的所有客户端" },
  },
  quorum: {
    url: "redlock://h1,h2,h3,h4,h5",
    sharedBy: {
      en: "all clients of the same independent Redis servers",
      zh: "同一组独立 Redis 服务器的所有客户端",
    },
  },
  redis: {
    url: "redis://127.0.0.1:6379",
    sharedBy: { en: "all clients of one Redis", zh: "同一个 Redis 的所有客户端" },
  },
  zookeeper: {
    url: "zookeeper://h1,h2,h3",
    sharedBy: { en: "all clients of one ensemble", zh: "同一个 ZooKeeper 集群的所有客户端" },
  },
};

const HEADINGS: Readonly<Record<Language, readonly string[]>> = {
  en: ["engine", "connect to", "shared by", "tokens rise across", "ttl", "has"],
  zh: ["引擎", "连接地址", "共享范围", "token 在何种情况下仍然递增", "ttl", "支持"],
};

const FENCING: Readonly<Record<EngineFacts["traits"]["fencing"], Words>> = {
  process: { en: "the life of the process", zh: "进程存活期间" },
  durable: { en: "restarts, `kill -9`, power cuts", zh: "重启、`kill -9`、断电" },
  clock: {
    en: "loss of data too, unless its clock was set back",
    zh: "包括数据丢失，只要时钟没有回拨",
  },
};

const OFFERS: readonly (readonly [(facts: EngineFacts) => boolean, Words])[] = [
  [({ traits }) => traits.modes.includes("shared"), { en: "shared", zh: "共享模式" }],
  [({ traits }) => traits.limits, { en: "limits", zh: "上限" }],
  [({ traits }) => traits.lockDelay, { en: "lock-delay", zh: "锁延迟" }],
  [({ queue }) => queue, { en: "queue", zh: "队列" }],
  [({ watch }) => watch, { en: "notices", zh: "通知" }],
];

/** Every page with a table, as it should be now. */
export async function freshPages(): Promise<ReadonlyMap<string, string>> {
  const engines = await Promise.all(engineNames().map(engineFacts));
  return new Map([
    ["README.md", withTable(read("README.md"), shortTable(engines, "en"))],
    ["README.zh-CN.md", withTable(read("README.zh-CN.md"), shortTable(engines, "zh"))],
    ["docs/engines/README.md", page(engines)],
  ]);
}

export function withTable(markdown: string, rows: string): string {
  if (!MARKED.test(markdown)) throw new Error("no place between <!-- engines --> marks");
  return markdown.replace(MARKED, (_, start: string, end: string) => `${start}${rows}${end}`);
}

function shortTable(engines: readonly EngineFacts[], language: Language): string {
  const rows = engines.map((facts) => {
    const { url, sharedBy } = describe(facts.name);
    const link = `[${facts.name}](docs/engines/${facts.name}.md)`;
    const offers = OFFERS.filter(([has]) => has(facts)).map(([, words]) => words[language]);
    return [
      ...[link, `\`${url}\``, sharedBy[language], FENCING[facts.traits.fencing][language]],
      ...[ttl(facts, language), offers.join(language === "en" ? ", " : "、")],
    ];
  });
  return table(HEADINGS[language], rows);
}

function page(engines: readonly EngineFacts[]): string {
  const names = engines.map(({ name }) => `[${name}](${name}.md)`);
  const row = (what: string, say: (facts: EngineFacts) => string) => [what, ...engines.map(say)];
  const yes = (has: boolean) => (has ? "yes" : "no");
  const rows = [
    row("connect to", ({ name }) => `\`${describe(name).url}\``),
    row("shared by", ({ name }) => describe(name).sharedBy.en),
    row("grants end with", ({ traits }) => (traits.expiry === "ttl" ? "their ttl" : "the session")),
    row("ttl", (facts) => ttl(facts, "en")),
    row("ttl in steps of", ({ traits }) => time(traits.ttl.stepMs, "en")),
    row("modes", ({ traits }) => traits.modes.join(", ")),
    row("limits on shared claims", ({ traits }) => yes(traits.limits)),
    row("lock-delay", ({ traits }) => yes(traits.lockDelay)),
    row("fencing", ({ traits }) => `\`${traits.fencing}\``),
    row("tokens rise across", ({ traits }) => FENCING[traits.fencing].en),
    row("tokens a grant can reserve", ({ traits }) => String(traits.tokenRange)),
    row("keeps waiters in line", ({ queue }) => yes(queue)),
    row("tells of changes", ({ watch }) => yes(watch)),
  ];
  return `# Engines

Written by \`node repo-tests/dist/engine-table.js --write\` from the traits that each engine exports and from the
harness with which it is held to [the laws](../contract.md).

${table(["", ...names], rows)}
${engines.map(section).join("\n")}`;
}

function section({ name, notes }: EngineFacts): string {
  if (notes === null)
    return `## ${name} and the laws\n\nIts harness needs a server; see its tests.\n`;
  const list = (intro: string, laws: readonly LawNote[]) =>
    laws.length === 0 ? "" : `\n${intro}\n\n${laws.map(item).join("")}`;
  const none =
    notes.excused.length + notes.notAsked.length === 0 ? "\nAll apply, and it keeps all.\n" : "";
  const excused = list("Excused, each with a schedule that shows why it must be:", notes.excused);
  const notAsked = list("Not applicable:", notes.notAsked);
  return `## ${name} and the laws\n${none}${excused}${notAsked}`;
}

function item({ law, why }: LawNote): string {
  return `- ${law}: *${why}*\n`;
}

function describe(name: string): (typeof ENGINES)[string] {
  const words = ENGINES[name];
  if (words === undefined) throw new Error(`engine-table.ts has no words for engine ${name}`);
  return words;
}

function ttl({ traits }: EngineFacts, language: Language): string {
  const { minMs, maxMs } = traits.ttl;
  const to = language === "en" ? " to " : " 至 ";
  return `${time(minMs, language)}${to}${time(maxMs, language)}`;
}

function time(ms: number, language: Language): string {
  if (ms >= DAY_MS) return `${ms / DAY_MS} ${language === "en" ? "days" : "天"}`;
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
