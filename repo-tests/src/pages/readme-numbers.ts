// The numbers in both READMEs, written from bench/results/redis.json. They stand between
// <!-- numbers --> and <!-- /numbers -->.
import { withMarked } from "../engines/engine-table.js";
import type { Language, Words } from "../engines/engine-words.js";
import { read } from "../repo-files.js";

export const RESULTS = "bench/results/redis.json";

/** The part of the bench's results that the READMEs use. */
export interface Results {
  readonly at: string;
  readonly machine: { readonly cores: number; readonly cpu: string; readonly node: string };
  readonly tables: readonly {
    readonly scenario: string;
    readonly rows: readonly {
      readonly contender: string;
      readonly measures: Readonly<Record<string, number>> | null;
    }[];
  }[];
}

type Measures = Readonly<Record<string, number>>;

interface Line {
  readonly scenario: string;
  readonly difference: Words;
  readonly show: (measures: Measures, language: Language) => string;
}

const CONTENDERS = ["holdfast-ioredis", "redlock", "semaphore", "verrou"];
const HEADINGS = ["Holdfast", "redlock", "redis-semaphore", "@verrou/core"];
const CROWD = 500;
const READMES: Readonly<Record<string, Language>> = { "README.md": "en", "README.zh-CN.md": "zh" };

/** What is different about Holdfast, and the measure that shows it. */
const LINES: readonly Line[] = [
  {
    scenario: "hand-over",
    difference: {
      en: "A release pushes the grant to the next waiter. From release to grant between two processes, median",
      zh: "释放时，授予直接推送给下一个等待者。两个进程之间从释放到授予的耗时，中位数",
    },
    show: ({ p50 }) => time(p50),
  },
  {
    scenario: "process-waiters",
    difference: {
      en: "Waiters stand in one queue. 32 waiters in 4 processes: 99 % of the waits are shorter than",
      zh: "等待者排在同一个队列里。4 个进程共 32 个等待者，99 % 的等待短于",
    },
    show: ({ p99 }) => time(p99),
  },
  {
    scenario: "crowd",
    difference: {
      en: "Waiters do not poll. Commands per second of 500 waiters behind one holder",
      zh: "等待者不轮询。500 个等待者等一个持有者时，每秒的命令数",
    },
    show: ({ calls }) => count(calls),
  },
  {
    scenario: "crowd",
    difference: {
      en: "A lease passes on inside a process without a round trip. Until all of 500 waiters had their turn",
      zh: "租约在进程内部移交，不需要网络往返。500 个等待者全部轮到为止的耗时",
    },
    show: drained,
  },
  {
    scenario: "renewal",
    difference: {
      en: "Renewals travel in batches. Commands per second that keep 10,000 locks alive",
      zh: "续约成批发送。维持 10,000 把锁，每秒的命令数",
    },
    show: ({ calls }) => count(calls),
  },
];

/** Both READMEs as they should be now. */
export function freshReadmes(results: Results): ReadonlyMap<string, string> {
  const pages = Object.entries(READMES).map(
    ([path, language]) =>
      [path, withMarked(read(path), "numbers", numbers(results, language))] as const,
  );
  return new Map(pages);
}

export function numbers({ at, machine, tables }: Results, language: Language): string {
  const rows = LINES.map(({ scenario, difference, show }) => {
    const cells = CONTENDERS.map((contender) => {
      const row = tables
        .find((table) => table.scenario === scenario)
        ?.rows.find((candidate) => candidate.contender === contender);
      if (!row?.measures) throw new Error(`${RESULTS} has no ${contender} in ${scenario}`);
      return show(row.measures, language);
    });
    return line([difference[language], ...cells]);
  });
  const about: Words = {
    en: `Measured on ${at.slice(0, 10)}: ${machine.cores} cores (${machine.cpu}), Node ${machine.node}, Redis on the same machine.`,
    zh: `测量于 ${at.slice(0, 10)}：${machine.cores} 核（${machine.cpu}），Node ${machine.node}，Redis 在同一台机器上。`,
  };
  const head = `${line(["", ...HEADINGS])}|${"---|".repeat(HEADINGS.length + 1)}\n`;
  return `${head}${rows.join("")}\n${about[language]}\n`;
}

function drained({ drainMs, served }: Measures, language: Language): string {
  const among = Math.round(served ?? 0);
  if (among >= CROWD) return time(drainMs);
  const words: Words = {
    en: `${among} of ${CROWD} in ${time(drainMs)}`,
    zh: `${time(drainMs)} 内 ${among} 个`,
  };
  return words[language];
}

function time(ms = Number.NaN): string {
  return ms >= 1_000 ? `${digits(ms / 1_000)} s` : `${digits(ms)} ms`;
}

function count(rate = Number.NaN): string {
  return rate >= 10 ? Math.round(rate).toLocaleString("en-US") : digits(rate);
}

/** Two digits that count, or all before the point. */
function digits(value: number): string {
  if (Number.isNaN(value)) throw new Error(`${RESULTS} lacks a number that the READMEs show`);
  return value >= 10 ? String(Math.round(value)) : String(Number(value.toPrecision(2)));
}

function line(cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |\n`;
}
