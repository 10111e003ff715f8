import assert from "node:assert";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { AcquireOptions } from "../options.js";
import { within } from "./timing.js";

const MAIN = fileURLToPath(new URL("./client-process-main.js", import.meta.url));
const START_MS = 40_000;

/** What a child process shall do; sent as JSON. */
export interface Job {
  readonly url: string;
  readonly resource: string;
  readonly options: Omit<AcquireOptions, "signal" | "retry">;
  /**
   * hold: acquire, and stay. wait: join the queue, and stay. watch: acquire, and read lease.held in
   * a loop. close: acquire, close, and end by itself. leave: acquire, and let the program end.
   * once: run once for at least ttlMs, and exit without closing anything.
   */
  readonly does: "hold" | "wait" | "watch" | "close" | "leave" | "once";
}

/** What a child process reports. */
export type Said =
  | { readonly says: "waiting" }
  | { readonly says: "held"; readonly token: string }
  | { readonly says: "closed" }
  | { readonly says: "ran" }
  | {
      readonly says: "paused";
      /** The value of `lease.held` in the first statement after the pause. */
      readonly held: boolean;
      readonly thrown: string;
      readonly aborted: boolean;
      readonly released: string;
    };

/** Another process on the same backend, which a law may stop, continue and kill. */
export class ClientProcess {
  readonly #child: ChildProcess;
  readonly #said: Said[] = [];
  readonly #exited: Promise<unknown>;
  #complaints = "";
  #wake: () => void = () => {};

  constructor(job: Job) {
    // The child reports through a channel that breaks when either side ends; then the child ends
    // too.
    this.#child = spawn(process.execPath, [MAIN, JSON.stringify(job)], {
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    this.#exited = once(this.#child, "close").finally(() => this.#wake());
    this.#child.on("message", (said) => {
      this.#said.push(said as Said);
      this.#wake();
    });
    this.#child.stderr!.on("data", (data: Buffer) => {
      this.#complaints += data.toString();
    });
  }

  /** Waits until the child reports this. */
  async until<S extends Said["says"]>(says: S, ms = START_MS): Promise<Extract<Said, { says: S }>> {
    const said = async () => {
      for (;;) {
        const found = this.#said.find((one) => one.says === says);
        if (found) return found as Extract<Said, { says: S }>;
        const { exitCode, signalCode } = this.#child;
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
    this.#child.kill(signal);
  }

  /** The exit code of a child that ends by itself. */
  async exit(ms: number): Promise<number | null> {
    await within(ms, this.#exited, "the end of a child that has nothing left to do");
    return this.#child.exitCode;
  }

  /** Kills the child like a crash: no clean-up of any kind runs. */
  async end(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#exited;
  }
}
