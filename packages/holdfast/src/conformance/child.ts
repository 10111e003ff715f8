import assert from "node:assert";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { AcquireOptions } from "../options.js";
import { within } from "./patience.js";

const MAIN = fileURLToPath(new URL("./child-main.js", import.meta.url));
const START_MS = 10_000;

/** What a child process is to do; it travels as JSON. */
export interface Job {
  readonly url: string;
  readonly resource: string;
  readonly options: Omit<AcquireOptions, "signal" | "retry">;
  /**
   * hold: acquire, and stay. wait: stand in line, and stay. watch: acquire, and look at the lease
   * without pause. close: acquire, close, and end by itself. leave: acquire, and simply fall off
   * the end of the program.
   */
  readonly does: "hold" | "wait" | "watch" | "close" | "leave";
}

/** What a child process says; one line of JSON each. */
export type Said =
  | { readonly says: "waiting" }
  | { readonly says: "held"; readonly token: string }
  | { readonly says: "closed" }
  | {
      readonly says: "paused";
      /** What `lease.held` said in the first statement after the pause. */
      readonly held: boolean;
      readonly thrown: string;
      readonly aborted: boolean;
      readonly released: string;
    };

/** Another process on the same backend, which a play may stop, continue and kill. */
export class Child {
  readonly #process: ChildProcess;
  readonly #said: Said[] = [];
  readonly #exited: Promise<unknown>;
  #complaints = "";
  #wake: () => void = () => {};

  constructor(job: Job) {
    // Its standard input is a pipe from us: when we are gone, it ends too.
    this.#process = spawn(process.execPath, [MAIN, JSON.stringify(job)], { stdio: "pipe" });
    this.#exited = once(this.#process, "close").finally(() => this.#wake());
    createInterface({ input: this.#process.stdout! }).on("line", (line) => {
      this.#said.push(JSON.parse(line) as Said);
      this.#wake();
    });
    this.#process.stderr!.on("data", (data: Buffer) => {
      this.#complaints += data.toString();
    });
  }

  /** Waits until the child says this. */
  async until<S extends Said["says"]>(says: S, ms = START_MS): Promise<Extract<Said, { says: S }>> {
    const said = async () => {
      for (;;) {
        const found = this.#said.find((one) => one.says === says);
        if (found) return found as Extract<Said, { says: S }>;
        const { exitCode, signalCode } = this.#process;
        const ended = exitCode ?? signalCode;
        assert(
          ended === null,
          `the child ended with ${ended} before "${says}": ${this.#complaints}`,
        );
        await new Promise<void>((go) => {
          this.#wake = go;
        });
      }
    };
    return within(ms, said(), `a child that should say "${says}"`);
  }

  signal(signal: "SIGSTOP" | "SIGCONT"): void {
    this.#process.kill(signal);
  }

  /** The exit code of a child that ends by itself. */
  async exit(ms: number): Promise<number | null> {
    await within(ms, this.#exited, "the end of a child that has nothing left to do");
    return this.#process.exitCode;
  }

  /** Ends it as a crash would: no clean-up of any kind runs. */
  async end(): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.#exited;
  }
}
