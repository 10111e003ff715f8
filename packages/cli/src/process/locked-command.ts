import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Lease } from "holdfast";
import { EXIT, exitCodeOfSignal } from "../exit-codes.js";
import type { RunRequest } from "../verbs/run-request.js";
import { family, isAlive, type KnownProcess, marked, signalProcess } from "./process-tree.js";

export interface CommandEnd {
  readonly exitCode: number;
  /** Why the command could not be started; undefined if it was. */
  readonly failure?: string;
}

const LOOK_EVERY_MS = 20;
// A process that forks while we kill it may escape one sweep, but hardly ten.
const SWEEPS = 10;

/** The command under the lock. */
export class LockedCommand {
  readonly ended: Promise<CommandEnd>;
  readonly #process: ChildProcess | null;
  readonly #mark = randomUUID();

  constructor({ command, args }: RunRequest, lease: Lease) {
    const env = {
      ...process.env,
      HOLDFAST_LOCK: lease.resource,
      HOLDFAST_TOKEN: String(lease.token),
      HOLDFAST_SEQUENCER: lease.sequencer,
      // A run inside another run carries the marks of both.
      HOLDFAST_RUN: [process.env.HOLDFAST_RUN ?? "", this.#mark].join(" ").trim(),
    };
    try {
      const child = spawn(command, args, { stdio: "inherit", env });
      this.#process = child;
      this.ended = new Promise((resolve) => {
        child.once("error", (error) => resolve(notStarted(command, error)));
        child.once("exit", (code, signal) =>
          resolve({ exitCode: signal === null ? (code ?? 0) : exitCodeOfSignal(signal) }),
        );
      });
    } catch (error) {
      // Most failures to start arrive as an event. A few, such as too long arguments, are thrown.
      this.#process = null;
      this.ended = Promise.resolve(notStarted(command, error as Error));
    }
  }

  forward(signal: NodeJS.Signals): void {
    this.#process?.kill(signal);
  }

  /**
   * Sends SIGTERM to the command and everything that it started, and SIGKILL after killInMs to
   * those that are left. When a shell dies, the program that it was running must not survive.
   */
  async stop(killInMs: number): Promise<void> {
    const deadline = performance.now() + killInMs;
    let members = this.#offspring();
    if (killInMs > 0) {
      this.#signal(members, "SIGTERM");
      // A stopped process handles SIGTERM only after SIGCONT.
      this.#signal(members, "SIGCONT");
      while (performance.now() < deadline && this.#anyAlive(members)) await sleep(LOOK_EVERY_MS);
    }
    for (let sweep = 0; sweep < SWEEPS; sweep++) {
      const known = members.filter(isAlive).flatMap(({ pid }) => family(pid));
      members = [...known, ...this.#offspring()];
      if (!this.#anyAlive(members)) return;
      this.#signal(members, "SIGKILL");
      await sleep(LOOK_EVERY_MS);
    }
  }

  #offspring(): KnownProcess[] {
    const pid = this.#process?.pid;
    return pid === undefined ? [] : [...family(pid), ...marked(this.#mark)];
  }

  #signal(members: readonly KnownProcess[], signal: NodeJS.Signals): void {
    this.#process?.kill(signal);
    for (const member of members) {
      if (member.pid !== this.#process?.pid) signalProcess(member, signal);
    }
  }

  #anyAlive(members: readonly KnownProcess[]): boolean {
    const child = this.#process;
    return (
      (child?.pid !== undefined && child.exitCode === null && child.signalCode === null) ||
      members.some(isAlive)
    );
  }
}

function notStarted(command: string, error: NodeJS.ErrnoException): CommandEnd {
  return error.code === "ENOENT"
    ? { exitCode: EXIT.notFound, failure: `there is no command "${command}"` }
    : {
        exitCode: EXIT.notExecutable,
        failure: `"${command}" cannot be executed (${error.code ?? error.message})`,
      };
}
