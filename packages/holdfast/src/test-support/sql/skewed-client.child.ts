// A separate program with another wall clock, TZ and database session. It carries out the test's
// commands.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { within } from "../../conformance/timing.js";
import type { Lease } from "../../core/holding/lease.js";
import type { Locks } from "../../locks.js";
import type { AcquireOptions } from "../../options.js";

const ANSWER_MS = 40_000;
const TURN_WAIT_MS = 30_000;
/** Enough for any number of turns on a busy machine. */
export const TURNS_MS = 300_000;

/** The job that the program gets at its start, as JSON. */
export interface SkewedJob {
  readonly port: number;
  readonly hold: "rows" | "shedlock";
  /** The time zone of its database sessions. */
  readonly zone: string;
}

/** An entry or an exit of a holder. */
export interface Step {
  readonly who: string;
  readonly what: "in" | "out";
  /** 0 for a holder without tokens. */
  readonly token: bigint;
}

export type Recorder = (resource: string, step: Step) => Promise<unknown>;

export interface WhereAmI {
  readonly wallMs: number;
  readonly minutesBehindUtc: number;
  readonly sessionZone: string;
}

interface Tasks {
  where(): Promise<WhereAmI>;
  acquire(resource: string, options: Patience): Promise<string>;
  tryAcquire(resource: string, options: Patience): Promise<string | null>;
  renew(): Promise<void>;
  held(): Promise<boolean>;
  release(): Promise<string>;
  turns(resource: string, who: string, count: number): Promise<void>;
}

type Patience = Pick<AcquireOptions, "ttlMs" | "waitMs" | "renew">;
type Reply = readonly [id: number, value: unknown, error: string | null];

/** The test's handle on another program. */
export class SkewedClient<J extends SkewedJob = SkewedJob> implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;
  readonly #waiting = new Map<number, (reply: Reply) => void>();
  #complaints = "";
  #asked = 0;

  constructor(main: string, job: J, env: Readonly<Record<string, string>>) {
    this.#child = spawn(process.execPath, [main, JSON.stringify(job)], {
      stdio: ["ignore", "ignore", "pipe", "ipc"],
      env: { ...process.env, ...env },
    });
    this.#child.on("message", (reply) => this.#waiting.get((reply as Reply)[0])?.(reply as Reply));
    this.#child.stderr!.on("data", (data: Buffer) => {
      this.#complaints += data.toString();
    });
    this.#exited = once(this.#child, "close");
  }

  ask<T extends keyof Tasks>(
    task: T,
    ...args: Parameters<Tasks[T]>
  ): Promise<Awaited<ReturnType<Tasks[T]>>> {
    const id = ++this.#asked;
    const replied = new Promise<Reply>((resolve) => this.#waiting.set(id, resolve));
    const ended = this.#exited.then((): Reply => {
      const { exitCode, signalCode } = this.#child;
      return [id, null, `it ended with ${exitCode ?? signalCode}: ${this.#complaints}`];
    });
    // The exit of the program is reported elsewhere, so a failed send adds nothing.
    this.#child.send([id, task, ...args], () => {});
    const what = `another program that is to ${task}`;
    const limitMs = task === "turns" ? TURNS_MS : ANSWER_MS;
    return within(limitMs, Promise.race([replied, ended]), what).then(([, value, error]) => {
      this.#waiting.delete(id);
      if (error !== null) throw new Error(`${what}: ${error}`);
      return value as Awaited<ReturnType<Tasks[T]>>;
    });
  }

  /** Like a crash: no clean-up runs. */
  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }
}

/** The program's side: carries out commands, one lease at a time, until the parent is gone. */
export function obey(locks: Locks, sessionZone: () => Promise<string>, record: Recorder): void {
  let lease: Lease | null = null;
  const tasks: Tasks = {
    where: async () => ({
      wallMs: Date.now(),
      minutesBehindUtc: new Date().getTimezoneOffset(),
      sessionZone: await sessionZone(),
    }),
    async acquire(resource, options) {
      lease = await locks.acquire(resource, options);
      return String(lease.token);
    },
    async tryAcquire(resource, options) {
      const got = await locks.tryAcquire(resource, options);
      lease = got ?? lease;
      return got === null ? null : String(got.token);
    },
    renew: () => lease!.renew(),
    held: async () => lease!.held,
    release: () => lease!.release(),
    turns: (resource, who, count) => takeTurns(locks, record, resource, who, count),
  };
  process.on("disconnect", () => process.exit(1));
  process.on("message", (message) => {
    const [id, task, ...args] = message as [number, keyof Tasks, ...unknown[]];
    const run = tasks[task] as (...args: unknown[]) => Promise<unknown>;
    run(...args).then(
      (value) => process.send!([id, value, null] satisfies Reply),
      (error: Error) => process.send!([id, null, String(error.stack)] satisfies Reply),
    );
  });
}

export async function takeTurns(
  locks: Locks,
  record: Recorder,
  resource: string,
  who: string,
  count: number,
): Promise<void> {
  for (let i = 0; i < count; i++) {
    const lease = await locks.acquire(resource, { waitMs: TURN_WAIT_MS });
    const { token } = lease;
    await record(resource, { who, what: "in", token });
    await sleep(1);
    await record(resource, { who, what: "out", token });
    await lease.release();
    // Pauses now and then, so that others have a chance.
    await sleep(i % 10);
  }
}
