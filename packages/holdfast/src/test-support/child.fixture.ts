import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const COMPLAINT_LENGTH = 8_192;

/** Another process that runs a compiled fixture. Both sides talk in lines. */
export class Child implements AsyncDisposable {
  readonly process: ChildProcess;
  /** Resolves when its output has ended too. */
  readonly exited: Promise<unknown>;
  readonly #lines: AsyncIterator<string>;
  #complaint = "";

  /** under: a command that starts the program, in a namespace for example. */
  constructor(program: URL, args: readonly string[], under: readonly string[] = []) {
    const [command, ...rest] = [...under, process.execPath, fileURLToPath(program), ...args];
    this.process = spawn(command!, rest, { stdio: ["pipe", "pipe", "pipe"] });
    this.process.stderr!.setEncoding("utf8").on("data", (text: string) => {
      process.stderr.write(text);
      this.#complaint = `${this.#complaint}${text}`.slice(-COMPLAINT_LENGTH);
    });
    this.exited = once(this.process, "close");
    this.process.stdin!.on("error", () => {});
    this.#lines = createInterface({ input: this.process.stdout! })[Symbol.asyncIterator]();
  }

  /** The next line, or null when the child has ended. */
  async line(): Promise<string | null> {
    const next = await this.#lines.next();
    return next.done ? null : next.value;
  }

  /** Fails with its stderr if it ended neither with 0 nor by a signal. */
  async ended(): Promise<void> {
    await this.exited;
    const { exitCode } = this.process;
    assert.ok(exitCode === null || exitCode === 0, `it ended with ${exitCode}: ${this.#complaint}`);
  }

  say(line: string): void {
    this.process.stdin!.write(`${line}\n`);
  }

  async kill(): Promise<void> {
    const { exitCode, signalCode } = this.process;
    if (exitCode !== null || signalCode !== null) return;
    const exited = once(this.process, "exit");
    this.process.kill("SIGKILL");
    await exited;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.kill();
  }
}
