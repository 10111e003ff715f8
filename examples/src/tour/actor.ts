import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Order, Report } from "./messages.js";

type Say = Report["say"];
export type Told<S extends Say> = Extract<Report, { say: S }>;

const WORKER = fileURLToPath(new URL("worker.js", import.meta.url));

/** One worker process, seen from the director. */
export class Actor {
  readonly name: string;
  readonly #process: ChildProcess;
  readonly #onReport: (actor: Actor, report: Report) => void;
  readonly #inbox: Report[] = [];
  #wake: () => void = () => {};
  #ended: string | null = null;

  constructor(
    name: string,
    args: readonly string[],
    onReport: (actor: Actor, report: Report) => void,
  ) {
    this.name = name;
    this.#onReport = onReport;
    // Not in the terminal's process group: on Ctrl-C the director ends the workers in order.
    const options = { detached: true, execArgv: ["--no-warnings"] };
    this.#process = fork(WORKER, [...args, name], options);
    this.#process.on("message", (report: Report) => {
      this.#onReport(this, report);
      this.#inbox.push(report);
      this.#wake();
    });
    this.#process.on("exit", (code, signal) => {
      this.#ended = `${name} ended (${signal ?? code})`;
      this.#wake();
    });
  }

  get pid(): number {
    return this.#process.pid ?? 0;
  }

  order(order: Order): void {
    this.#process.send(order);
  }

  signal(signal: NodeJS.Signals): void {
    this.#process.kill(signal);
  }

  /** The next report of this kind, in the order in which they were sent. */
  async next<S extends Say>(say: S): Promise<Told<S>> {
    for (;;) {
      const at = this.#inbox.findIndex((report) => report.say === say);
      if (at >= 0) return this.#inbox.splice(at, 1)[0] as Told<S>;
      if (this.#ended !== null) throw new Error(`${this.#ended} before it was "${say}"`);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** Drops reports that nobody waited for. */
  forget(): void {
    this.#inbox.length = 0;
  }

  /** Sends SIGKILL, because a stopped process handles no other signal. Resolves when it has ended. */
  async dismiss(): Promise<void> {
    if (this.#ended !== null) return;
    const gone = new Promise((resolve) => this.#process.once("exit", resolve));
    this.#process.kill("SIGKILL");
    await gone;
  }
}
