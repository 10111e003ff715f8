import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { TrueGrant } from "../../conformance/index.js";
import { connect } from "../../connect.js";
import { hostInstant } from "../../core/runtime/clock.js";
import { type Random, randomOf } from "../seeded-random.fixture.js";
import { type Hold, holdsOf, violations } from "./checker.fixture.js";
import { contended, type LogEntry, type Reading, type WorkerJob } from "./history.fixture.js";
import { type Asked, TokenRegister } from "./register.fixture.js";

const MAIN = fileURLToPath(new URL("./worker.child.js", import.meta.url));
export const PROCESSES = 4;
const LOOPS = 8;
const READ_EVERY_MS = 15;
/** The time without faults at the end, in which every process must recover. */
const QUIET_MS = 4_000;
/** On a busy machine the recovery takes longer. */
const MOST_QUIET_MS = 60_000;
/** A last acquire waits for 15 s at most, and a busy machine is slow; more than this is a hang. */
const END_MS = 60_000;

/** One fault of a backend. inflict() resolves when it is over. */
export interface BackendFault {
  readonly name: string;
  inflict(random: Random): Promise<void>;
}

/** The backend of a torture test, and how to reach and disturb it. */
export interface Place extends AsyncDisposable {
  readonly ttlMs: number;
  readonly can: Parameters<typeof contended>[0];
  /** The URL by which process number `index` reaches the backend. */
  url(index: number): string;
  /** A URL that is never disturbed. */
  readonly directUrl: string;
  /** In addition to the faults of every process, which is killed, or stopped past its ttl. */
  readonly faults: readonly BackendFault[];
  /** The backend's own record, not what the engine says of it; fails while the backend is down. */
  truth(resource: string): Promise<readonly TrueGrant[]> | readonly TrueGrant[];
  /** Whether the grants of a dead process end early. */
  readonly noticesDeath?: boolean;
}

export interface TortureTerms {
  readonly forMs: number;
  readonly seed: number;
  /** Fewer grants or faults than these prove nothing. */
  readonly leastGrants: number;
  readonly leastFaults: number;
}

/** For every test run: enough to see that it works, even on a busy machine. */
export const MOMENT: TortureTerms = { forMs: 5_000, seed: 1, leastGrants: 50, leastFaults: 5 };

/**
 * For the long tests. A failure names the seed, which gives the same faults, not the same schedule.
 */
export const MINUTE: TortureTerms = {
  forMs: 60_000,
  seed: Number(process.env.HOLDFAST_SEED ?? randomInt(1_000_000)),
  leastGrants: 2_000,
  leastFaults: 50,
};

/** Lets processes contend on a backend under faults, and checks what they logged. */
export async function torture(place: Place, terms: TortureTerms): Promise<void> {
  const run = new TortureRun(place, terms);
  try {
    await run.contend();
    run.judge();
    await run.nothingIsLeft();
  } finally {
    await run.end();
  }
}

class TortureRun {
  readonly #place: Place;
  readonly #terms: TortureTerms;
  readonly #random: Random;
  readonly #folder = mkdtempSync(join(tmpdir(), "torture-"));
  readonly #register = new TokenRegister();
  readonly #readings: Reading[] = [];
  readonly #children = new Map<number, ChildProcess>();
  readonly #stopped = new Set<ChildProcess>();
  readonly #faults: Record<string, number> = {};
  readonly #died: string[] = [];
  readonly #killed: LogEntry[] = [];
  #started = 0;
  #unread = 0;
  #over = false;
  #quietFrom = Infinity;

  constructor(place: Place, terms: TortureTerms) {
    this.#place = place;
    this.#terms = terms;
    this.#random = randomOf(terms.seed);
  }

  async contend(): Promise<void> {
    for (let i = 0; i < PROCESSES; i++) this.#start(i);
    const until = hostInstant() + this.#terms.forMs;
    const disturbances = [this.#disturbProcesses(until), this.#disturbBackend(until)];
    const reading = this.#readTruth();
    await Promise.all(disturbances);
    this.#quietFrom = hostInstant();
    do await sleep(QUIET_MS);
    while (!this.#allRecovered() && hostInstant() < this.#quietFrom + MOST_QUIET_MS);
    this.#over = true;
    await reading;
    await Promise.all([...this.#children.values()].map((child) => this.#finish(child)));
  }

  judge(): void {
    const entries = [...this.#entries(), ...this.#killed];
    const resources = contended(this.#place.can);
    const wrong = [
      ...violations(entries, this.#readings, resources),
      ...this.#register.wrongs,
      ...this.#died,
    ];
    const kinds = new Map(resources.map(({ name, kind }) => [name, kind]));
    const all = holdsOf(entries);
    const holds = this.#singles(all);
    const grouped = all.filter(({ resource, from, to }) => {
      return kinds.get(resource) === "group" && to - from > this.#place.ttlMs;
    });
    const ended: Record<string, number> = {};
    for (const entry of entries) {
      if (entry.e === "ended") ended[entry.code] = (ended[entry.code] ?? 0) + 1;
    }
    const report = {
      ...{ seed: this.#terms.seed, grants: holds.length, faults: this.#faults, ended },
      grouped: grouped.length,
      ...{ readings: this.#readings.length, unread: this.#unread, refused: this.#register.refused },
      ...{ counted: this.#register.value, violations: wrong.length },
    };
    console.log(JSON.stringify(report));
    assert.deepEqual(wrong.slice(0, 10), [], `${wrong.length} violations`);
    const { leastGrants, leastFaults } = this.#terms;
    assert.ok(holds.length >= leastGrants, `weak: ${holds.length} grants of ${leastGrants}`);
    assert.ok(this.#faultCount >= leastFaults, `weak: fewer than ${leastFaults} faults`);
    assert.deepEqual(this.#notRecovered(holds), [], "nobody got these after the faults were over");
    assert.ok(this.#register.value > 0, "nobody counted");
  }

  /** All processes have ended: nobody may wait, and every grant must end within its ttl. */
  async nothingIsLeft(): Promise<void> {
    const { directUrl, ttlMs } = this.#place;
    const locks = await connect(directUrl, { defaults: { ttlMs } });
    const deadline = hostInstant() + ttlMs * 3 + 30_000;
    try {
      for (const { name } of contended(this.#place.can)) {
        for (;;) {
          const { holders, waiters } = await locks.inspect(name);
          if (holders.length + waiters.length === 0) break;
          const left = `${holders.length} holders and ${waiters.length} waiters of ${name}`;
          assert.ok(hostInstant() < deadline, `${left} were left behind`);
          await sleep(100);
        }
      }
    } finally {
      await locks.close();
    }
  }

  async end(): Promise<void> {
    this.#over = true;
    for (const child of this.#children.values()) child.kill("SIGKILL");
    await Promise.all([...this.#children.values()].map((child) => ended(child)));
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #start(index: number): void {
    const resources = contended(this.#place.can).map(({ limit, ...rest }) => ({
      ...rest,
      limit: limit === Infinity ? null : limit,
    }));
    const job: WorkerJob = {
      url: this.#place.url(index),
      log: join(this.#folder, `${this.#started++}.ndjson`),
      seed: this.#terms.seed * 1_000 + this.#started,
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
      const answer = this.#register.answer(asked);
      if (child.connected) child.send(answer, () => {});
    });
    child.on("exit", (code, signal) => {
      if (code !== 0 && signal !== "SIGKILL") {
        this.#died.push(`a process ended with ${code ?? signal}`);
      }
      if (this.#children.get(index) !== child || this.#over) return;
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

  /**
   * Kills and stops processes. A stopped one continues after its ttl and tries what it no longer
   * may.
   */
  async #disturbProcesses(until: number): Promise<void> {
    const { ttlMs } = this.#place;
    while (this.#continues(until)) {
      await sleep(150 + this.#random(500));
      const children = [...this.#children.values()].filter((child) => !this.#stopped.has(child));
      const victim = children[this.#random(children.length)];
      if (victim === undefined) continue;
      if (this.#random(3) === 0) {
        if (!victim.kill("SIGKILL")) continue;
        this.#count("kill");
        if (this.#place.noticesDeath) this.#killed.push({ e: "killed", pid: victim.pid! });
        continue;
      }
      if (!victim.kill("SIGSTOP")) continue;
      this.#count("stop");
      this.#stopped.add(victim);
      await sleep(this.#random(2) === 0 ? this.#random(ttlMs) : ttlMs * 1.3);
      victim.kill("SIGCONT");
      this.#stopped.delete(victim);
    }
  }

  async #disturbBackend(until: number): Promise<void> {
    const { faults } = this.#place;
    while (faults.length > 0 && this.#continues(until)) {
      await sleep(100 + this.#random(400));
      const fault = faults[this.#random(faults.length)]!;
      await fault.inflict(this.#random);
      this.#count(fault.name);
    }
  }

  /** Reads the backend's record repeatedly; while the backend is down there is nothing to read. */
  async #readTruth(): Promise<void> {
    const all = contended(this.#place.can);
    // Alternates between the few and the many, which would otherwise crowd the few out.
    const few = all.filter(({ kind }) => kind !== "group");
    const many = all.filter(({ kind }) => kind === "group");
    for (let turn = 0; !this.#over; turn++) {
      await sleep(READ_EVERY_MS);
      const names = turn % 2 === 0 ? few : many;
      const resource = names[(turn >> 1) % names.length]!.name;
      const from = hostInstant();
      try {
        const grants = await this.#place.truth(resource);
        this.#readings.push({ resource, from, to: hostInstant(), grants });
      } catch {
        this.#unread++;
      }
    }
  }

  /** On a busy machine it takes longer to get enough grants and faults to prove something. */
  #continues(until: number): boolean {
    if (hostInstant() < until) return true;
    return hostInstant() < until + this.#terms.forMs * 9 && this.#isWeak();
  }

  #allRecovered(): boolean {
    return this.#notRecovered(holdsOf(this.#entries())).length === 0;
  }

  /** Resources that are held one at a time, and that nobody has held since the faults were over. */
  #notRecovered(holds: readonly Hold[]): string[] {
    const late = new Set(holds.filter(({ from }) => from > this.#quietFrom).map((h) => h.resource));
    const plain = contended(this.#place.can).filter(({ kind }) => kind === undefined);
    return plain.map(({ name }) => name).filter((name) => !late.has(name));
  }

  #isWeak(): boolean {
    const { leastGrants, leastFaults } = this.#terms;
    if (this.#faultCount < leastFaults) return true;
    return this.#singles(holdsOf(this.#entries())).length < leastGrants;
  }

  /** The holds of resources that are held one at a time: a group would count for many. */
  #singles(holds: readonly Hold[]): readonly Hold[] {
    const plain = contended(this.#place.can).filter(({ kind }) => kind === undefined);
    const names = new Set(plain.map(({ name }) => name));
    return holds.filter(({ resource }) => names.has(resource));
  }

  get #faultCount(): number {
    return Object.values(this.#faults).reduce((sum, count) => sum + count, 0);
  }

  #count(fault: string): void {
    this.#faults[fault] = (this.#faults[fault] ?? 0) + 1;
  }

  #entries(): LogEntry[] {
    return readdirSync(this.#folder).flatMap((file) => {
      const lines = readFileSync(join(this.#folder, file), "utf8").split("\n");
      // The last line of a killed process may be incomplete.
      return lines.filter((line) => line.endsWith("}")).map((line) => JSON.parse(line) as LogEntry);
    });
  }
}

/** Disposes in reverse order. */
export async function disposeAll(all: readonly AsyncDisposable[]): Promise<void> {
  for (const one of [...all].reverse()) await one[Symbol.asyncDispose]();
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
}
