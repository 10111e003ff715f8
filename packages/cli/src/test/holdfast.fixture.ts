// Runs the command line as a user does: in its own process and its own process group.
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { connect, type Locks } from "holdfast";

export const MAIN = fileURLToPath(new URL("../main.js", import.meta.url));

const PATIENCE_MS = 60_000;

export interface Scratch {
  readonly folder: string;
  readonly url: string;
  readonly locks: Locks;
}

/** A lock file for one test, and a connection of the test's own to it. */
export async function scratch(t: TestContext): Promise<Scratch> {
  const folder = mkdtempSync(join(tmpdir(), "cli-"));
  const url = `sqlite:${join(folder, "locks.db")}`;
  const locks = await connect(url, { defaults: { label: "the test" } });
  t.after(async () => {
    await locks.close();
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  });
  return { folder, url, locks };
}

/** A program that is running, with what it has said so far. */
export class Running {
  stdout = "";
  stderr = "";
  readonly ended: Promise<number | NodeJS.Signals>;
  readonly #process: ChildProcess;

  constructor(t: TestContext, file: string, args: readonly string[], env: NodeJS.ProcessEnv = {}) {
    const { HOLDFAST_URL: _, ...inherited } = process.env;
    this.#process = spawn(file, args, { detached: true, env: { ...inherited, ...env } });
    this.#process.stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.stdout += text;
    });
    this.#process.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.stderr += text;
    });
    this.ended = new Promise((resolve) => {
      this.#process.once("close", (code, signal) => resolve(signal ?? code ?? -1));
    });
    t.after(() => {
      try {
        process.kill(-this.pid, "SIGKILL");
      } catch {
        // Nobody of the group is left, as it should be.
      }
    });
  }

  get pid(): number {
    return this.#process.pid!;
  }

  type(text: string): void {
    this.#process.stdin?.write(text);
  }

  endInput(): void {
    this.#process.stdin?.end();
  }

  signal(signal: NodeJS.Signals): void {
    process.kill(this.pid, signal);
  }

  /** What a terminal does on Ctrl-C. */
  signalGroup(signal: NodeJS.Signals): void {
    process.kill(-this.pid, signal);
  }

  async until(stream: "stdout" | "stderr", pattern: RegExp): Promise<void> {
    await until(
      () => pattern.test(this[stream]),
      () => `${pattern} in ${stream}: ${this[stream]}`,
    );
  }
}

export function holdfast(
  t: TestContext,
  args: readonly string[],
  env?: NodeJS.ProcessEnv,
): Running {
  return new Running(t, process.execPath, ["--no-warnings", MAIN, ...args], env);
}

/** Runs to the end with nothing to read. */
export async function finish(running: Running) {
  running.endInput();
  const code = await running.ended;
  return { code, stdout: running.stdout, stderr: running.stderr };
}

export async function until(
  condition: () => boolean | Promise<boolean>,
  what: () => string,
): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  while (!(await condition())) {
    assert.ok(performance.now() < deadline, `timed out waiting for ${what()}`);
    await sleep(10);
  }
}
