import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { openDatabase } from "./database.js";
import { resolveSqlite } from "./options.js";

/** A folder of its own for each test, gone with everything in it afterwards. */
export class Ground implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), "holdfast-sqlite-"));
  readonly path = join(this.folder, "locks.db");
  readonly url = `sqlite:${this.path}`;
  readonly #children: ChildProcess[] = [];

  /** Runs one statement beside the engine, through the same SQLite: a second one would drop its locks. */
  async sql(statement: string): Promise<Record<string, unknown>[]> {
    const client = await openDatabase(resolveSqlite({ path: this.path }), "quick");
    client.exec("PRAGMA busy_timeout = 2000");
    try {
      return client.prepare(statement).all() as Record<string, unknown>[];
    } finally {
      client.close();
    }
  }

  /** Starts a fixture beside this file; its lines of output arrive one by one. */
  child(fixture: string, args: readonly string[], prefix: readonly string[] = []): Child {
    const file = fileURLToPath(new URL(`${fixture}.fixture.js`, import.meta.url));
    const [command, ...rest] = [...prefix, process.execPath, file, ...args];
    const child = spawn(command!, rest, { stdio: ["pipe", "pipe", "inherit"] });
    this.#children.push(child);
    return new Child(child);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#children) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const exited = new Promise((done) => child.once("exit", done));
      child.kill("SIGKILL");
      await exited;
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Says why not, where the system does not let us make such a namespace. */
export function canRun(t: TestContext, [command, ...args]: readonly string[]): boolean {
  const { status, stderr, error } = spawnSync(command!, [...args, "true"], { encoding: "utf8" });
  if (status === 0) return true;
  t.diagnostic(`not tested here, needs root and namespaces: ${error?.message ?? stderr.trim()}`);
  return false;
}

export class Child {
  readonly process: ChildProcess;
  readonly exited: Promise<void>;
  readonly #lines: string[] = [];
  readonly #readers: ((line: string | null) => void)[] = [];
  #ended = false;

  constructor(child: ChildProcess) {
    this.process = child;
    let rest = "";
    child.stdout!.setEncoding("utf8").on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop()!;
      for (const line of lines) this.#deliver(line);
    });
    this.exited = new Promise((done) => child.once("close", () => done(this.#end())));
  }

  /** The next line, or null when the child has ended. */
  line(): Promise<string | null> {
    const next = this.#lines.shift();
    if (next !== undefined) return Promise.resolve(next);
    return this.#ended ? Promise.resolve(null) : new Promise((read) => this.#readers.push(read));
  }

  say(line: string): void {
    this.process.stdin!.write(`${line}\n`);
  }

  #deliver(line: string): void {
    const reader = this.#readers.shift();
    if (reader) reader(line);
    else this.#lines.push(line);
  }

  #end(): void {
    this.#ended = true;
    for (const reader of this.#readers.splice(0)) reader(null);
  }
}
