import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Guardian, guard } from "./guardian.js";

const POLL_MS = 20;
const LOG_TAIL = 4_000;
const DEFAULTS = {
  env: {},
  readyWithinMs: 60_000,
  stopSignal: "SIGTERM",
  stopWithinMs: 15_000,
} as const;

export interface ServerSpec {
  readonly name: string;
  /** The program and its arguments, for a given temporary folder. */
  command(folder: string): readonly [file: string, ...args: string[]];
  /** Resolves when the server answers; any rejection means "not yet". */
  probe(): Promise<void>;
  /** Environment variables in addition to those of this process. */
  readonly env?: Readonly<Record<string, string>>;
  readonly readyWithinMs?: number;
  readonly stopSignal?: NodeJS.Signals;
  /** How long it may take to stop before it is killed. */
  readonly stopWithinMs?: number;
}

/** A server as a child process in a temporary folder. It ends with this process in any case. */
export class ServerProcess {
  readonly folder: string;
  readonly #spec: Required<ServerSpec>;
  #child: ChildProcess | undefined;
  #guardian: Guardian | undefined;

  constructor(spec: ServerSpec) {
    this.#spec = { ...DEFAULTS, ...spec };
    this.folder = mkdtempSync(join(tmpdir(), `${spec.name}-`));
    // A server that runs as another user must be able to enter the folder.
    chmodSync(this.folder, 0o711);
  }

  get pid(): number {
    const pid = this.#child?.pid;
    if (pid === undefined) throw new Error(`${this.#spec.name} is not running`);
    return pid;
  }

  /** Starts the server and waits until it answers. If it does not, everything of it is removed. */
  async start(): Promise<void> {
    const { name, readyWithinMs } = this.#spec;
    this.#spawn();
    const deadline = performance.now() + readyWithinMs;
    for (;;) {
      try {
        await this.#spec.probe();
        return;
      } catch (cause) {
        const failed = this.#hasEnded ? "ended" : performance.now() > deadline ? "hung" : null;
        if (failed === null) {
          await sleep(POLL_MS);
          continue;
        }
        const log = this.log();
        await this.stop();
        throw new Error(
          failed === "ended"
            ? `${name} ended while starting:\n${log}`
            : `${name} did not answer within ${readyWithinMs} ms:\n${log}`,
          { cause },
        );
      }
    }
  }

  /** The end of the server's log. */
  log(): string {
    return readFileSync(join(this.folder, "log"), "utf8").slice(-LOG_TAIL);
  }

  /** Stops the process like a frozen machine: connections stay open and nothing answers. */
  pause(): void {
    process.kill(this.pid, "SIGSTOP");
  }

  resume(): void {
    process.kill(this.pid, "SIGCONT");
  }

  /** Ends the process and keeps the folder, for a restart. */
  async end(signal: NodeJS.Signals = this.#spec.stopSignal): Promise<void> {
    const child = this.#child;
    if (child?.pid === undefined) return;
    if (!this.#hasEnded) {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.kill(signal);
      // A paused process handles no signal but SIGKILL until it continues.
      child.kill("SIGCONT");
      await Promise.race([ended, sleep(this.#spec.stopWithinMs, null, { ref: false })]);
    }
    // The group outlives its leader if the server had children of its own.
    killGroup(child.pid);
    while (!this.#hasEnded) await sleep(POLL_MS);
    this.#guardian?.dismiss();
    this.#child = undefined;
  }

  /** Ends the process and removes its folder. May be called twice. */
  async stop(): Promise<void> {
    await this.end();
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }

  get #hasEnded(): boolean {
    const child = this.#child;
    return child?.pid === undefined || child.exitCode !== null || child.signalCode !== null;
  }

  #spawn(): void {
    if (this.#child !== undefined) throw new Error(`${this.#spec.name} is running already`);
    const [file, ...args] = this.#spec.command(this.folder);
    // A file and not a pipe: the server must not block while this process is paused and does not
    // read.
    const log = openSync(join(this.folder, "log"), "a");
    try {
      const stdio = ["ignore", log, log] as const;
      const env = { ...process.env, ...this.#spec.env };
      const options = { cwd: this.folder, detached: true, env };
      this.#child = spawn(file, args, { ...options, stdio: [...stdio] });
    } finally {
      closeSync(log);
    }
    // A program that cannot be started has no pid, and the probe loop reports it with the log.
    this.#child.on("error", () => {});
    if (this.#child.pid !== undefined) this.#guardian = guard(this.#child.pid, this.folder);
  }
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch (error) {
    // ESRCH: no process is left, which is the goal.
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** Starts several servers. If one fails to start, the others are stopped. */
export async function allOrNone<S extends { stop(): Promise<void> }>(
  starts: readonly Promise<S>[],
): Promise<S[]> {
  const outcomes = await Promise.allSettled(starts);
  const started = outcomes.flatMap((o) => (o.status === "fulfilled" ? [o.value] : []));
  const failure = outcomes.find((outcome) => outcome.status === "rejected");
  if (failure === undefined) return started;
  await Promise.all(started.map((server) => server.stop()));
  throw failure.reason;
}
