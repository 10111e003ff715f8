import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Random } from "../seeded-random.fixture.js";
import { type Asked, FencedNumber } from "./fenced-number.fixture.js";
import { contended, type LogEntry, type WorkerJob } from "./history.fixture.js";
import { type Place, PROCESSES } from "./place.fixture.js";

const MAIN = fileURLToPath(new URL("./worker.child.js", import.meta.url));
const LOOPS = 8;
/** A last acquire waits for 15 s at most, and a busy machine is slow; more than this is a hang. */
const END_MS = 60_000;

/** The processes that contend on a backend, and their logs. One that is killed is started again. */
export class Workers {
  /** What they count in. */
  readonly number = new FencedNumber();
  /** How processes ended that were not killed. */
  readonly died: string[] = [];
  readonly #place: Place;
  readonly #seed: number;
  readonly #folder = mkdtempSync(join(tmpdir(), "torture-"));
  readonly #children = new Map<number, ChildProcess>();
  readonly #stopped = new Set<ChildProcess>();
  readonly #killed: LogEntry[] = [];
  #started = 0;
  #isOver = false;

  constructor(place: Place, seed: number) {
    this.#place = place;
    this.#seed = seed;
  }

  start(): void {
    for (let i = 0; i < PROCESSES; i++) this.#start(i);
  }

  /** Waits until all processes have come to their end by themselves. */
  async finish(): Promise<void> {
    this.#isOver = true;
    await Promise.all([...this.#children.values()].map((child) => this.#finish(child)));
  }

  /** Kills what is left, and deletes the logs. */
  async end(): Promise<void> {
    this.#isOver = true;
    for (const child of this.#children.values()) child.kill("SIGKILL");
    await Promise.all([...this.#children.values()].map((child) => ended(child)));
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** One of the processes that are not stopped, if there is one. */
  pick(random: Random): ChildProcess | undefined {
    const children = [...this.#children.values()].filter((child) => !this.#stopped.has(child));
    return children[random(children.length)];
  }

  /** Returns whether the process was still there. */
  kill(victim: ChildProcess): boolean {
    if (!victim.kill("SIGKILL")) return false;
    if (this.#place.noticesDeath) this.#killed.push({ e: "killed", pid: victim.pid! });
    return true;
  }

  /** Returns whether the process was still there. */
  stop(victim: ChildProcess): boolean {
    if (!victim.kill("SIGSTOP")) return false;
    this.#stopped.add(victim);
    return true;
  }

  resume(victim: ChildProcess): void {
    victim.kill("SIGCONT");
    this.#stopped.delete(victim);
  }

  /** All that was logged so far. */
  entries(): LogEntry[] {
    const logged = readdirSync(this.#folder).flatMap((file) => {
      const lines = readFileSync(join(this.#folder, file), "utf8").split("\n");
      // The last line of a killed process may be incomplete.
      return lines.filter((line) => line.endsWith("}")).map((line) => JSON.parse(line) as LogEntry);
    });
    return [...logged, ...this.#killed];
  }

  #start(index: number): void {
    const resources = contended(this.#place.can).map(({ limit, ...rest }) => ({
      ...rest,
      limit: limit === Infinity ? null : limit,
    }));
    const job: WorkerJob = {
      url: this.#place.url(index),
      log: join(this.#folder, `${this.#started++}.ndjson`),
      seed: this.#seed * 1_000 + this.#started,
      ttlMs: this.#place.ttlMs,
      loops: LOOPS,
      resources,
    };
    const child = spawn(process.execPath, [MAIN, JSON.stringify(job)], {
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    this.#children.set(index, child);
    child.on("message", (asked: Asked) => {
      // A killed process needs no answer.
      const answer = this.number.answer(asked);
      if (child.connected) child.send(answer, () => {});
    });
    child.on("exit", (code, signal) => {
      if (code !== 0 && signal !== "SIGKILL") {
        this.died.push(`a process ended with ${code ?? signal}`);
      }
      if (this.#children.get(index) !== child || this.#isOver) return;
      this.#start(index);
    });
  }

  async #finish(child: ChildProcess): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = ended(child);
    child.send("enough", () => {});
    const late = sleep(END_MS, "late", { ref: false });
    assert.notEqual(await Promise.race([gone, late]), "late", "a process did not come to its end");
  }
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
}
