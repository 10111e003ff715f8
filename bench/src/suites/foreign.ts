import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { SectionLog } from "../measuring/section-log.js";
import type { ReleaseLock, Subject } from "../measuring/suite.js";
import type { ContendOrder, ContendReport } from "../measuring/worker/contend.js";

const NS_A_MS = 1e6;
const LAST_WORDS = 2_000;

/**
 * A lock in another language: a program that reads commands as lines. It takes its own instants on
 * the clock that all processes share, and runs the loops itself. So the pipe to it costs nothing.
 */
export async function openForeign(file: string, args: readonly string[]): Promise<Subject> {
  const program = new Program(file, args);
  await program.line("ready");
  return {
    async acquire() {
      const enteredAt = await program.ask("acquire", "held");
      const instants: ReleaseLock["instants"] = { enteredAt, leftAt: Number.NaN };
      const release = async () => {
        instants.leftAt = await program.ask("release", "released");
      };
      return Object.assign(release, { instants });
    },
    async contend({ waiters, from, until }: ContendOrder): Promise<ContendReport> {
      const log = new SectionLog();
      program.say(`contend ${waiters} ${nanoseconds(from)} ${nanoseconds(until)}`);
      for (;;) {
        const words = (await program.line()).split(" ");
        if (words[0] === "done") {
          const cpuMs = Number(words[1]) / NS_A_MS;
          const all = { sections: log.pack(), pending: new Map(), gaveUp: 0 };
          return { ...all, endedAt: until, cpuMs };
        }
        const [waiter, asked, entered, left] = words.map(Number) as [number, ...number[]];
        log.add(waiter, asked! / NS_A_MS, entered! / NS_A_MS, left! / NS_A_MS);
      }
    },
  };
}

/** The program ends when its input ends, that is, with this process. */
class Program {
  readonly #input: NodeJS.WritableStream;
  readonly #lines: AsyncIterator<string>;
  #lastWords = "";

  constructor(file: string, args: readonly string[]) {
    const child = spawn(file, args, { stdio: ["pipe", "pipe", "pipe"] });
    // A write to a program that has ended fails here. The missing answer reports it.
    child.stdin.on("error", () => {});
    child.on("error", (error) => {
      this.#lastWords = error.message;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#lastWords = (this.#lastWords + text).slice(-LAST_WORDS);
    });
    this.#input = child.stdin;
    this.#lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  }

  say(words: string): void {
    this.#input.write(`${words}\n`);
  }

  /** The next line. If it must start with a word, the rest after that word. */
  async line(wanted?: string): Promise<string> {
    const { value, done } = await this.#lines.next();
    if (done) throw new Error(`the program has ended: ${this.#lastWords.trim()}`);
    if (wanted === undefined) return value;
    if (value.split(" ")[0] === wanted) return value.slice(wanted.length + 1);
    throw new Error(`the program says "${value}" instead of ${wanted}`);
  }

  async ask(words: string, wanted: string): Promise<number> {
    this.say(words);
    return Number(await this.line(wanted)) / NS_A_MS;
  }
}

function nanoseconds(instantMs: number): string {
  return String(BigInt(Math.round(instantMs * 1e3)) * 1_000n);
}
