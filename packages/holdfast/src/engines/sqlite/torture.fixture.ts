import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Child, Ground } from "./ground.fixture.js";
import { Register, type Write } from "./register.fixture.js";

export interface TortureTerms {
  readonly processes: number;
  /** How many increments each of them owes. A killed one is replaced by one that does what is left. */
  readonly each: number;
  /** When it is enough, whatever is left. */
  readonly forMs: number;
  readonly ttlMs: number;
  /** How long two holders of three stay in the middle of their work. */
  readonly lingerMs: number;
  readonly killEveryMs: number;
  /** How long a holder is stopped, now and then; longer than ttlMs. 0 is never. */
  readonly stopMs: number;
}

export interface TortureReport {
  readonly acknowledged: number;
  readonly kills: number;
  readonly stops: number;
  /** How often a holder found that its own lease was lost, before it wrote. */
  readonly noticed: number;
  /** How often the register refused a stale token. */
  readonly refused: number;
  /** As the waiters counted it, less what they were stopped for. */
  readonly longestWaitMs: number;
  /** What the register accepted, in order. */
  readonly writes: readonly Write[];
}

/** Processes that count in one register under one lock, while they are killed and stopped at random. */
export async function torture(terms: TortureTerms): Promise<TortureReport> {
  await using ground = new Ground();
  const scene = new Scene(ground, terms);
  await Register.create(scene.registerPath);
  await scene.play();
  const register = await Register.open(scene.registerPath);
  const writes = register.history();
  register.close();
  return { ...scene.counts, writes };
}

/** What must be true of every torture, however long it was. */
export function judge(report: TortureReport, longestWaitMs: number): void {
  const { writes, acknowledged, kills, ...rest } = report;
  const final = writes.length;
  console.log(JSON.stringify({ acknowledged, final, kills, ...rest }));
  assert.ok(kills > 0, "somebody must have been killed for this to mean anything");
  for (const [i, { token, value }] of writes.entries()) {
    const before = writes[i - 1] ?? { token: 0, value: 0 };
    assert.ok(token > before.token, `token ${token} was accepted after ${before.token}`);
    assert.equal(value, before.value + 1, `token ${token} overwrote what it had not seen`);
  }
  assert.ok(acknowledged <= final, `${acknowledged} were acknowledged, and ${final} are there`);
  assert.ok(final <= acknowledged + kills, `${final} are there, of ${acknowledged} + ${kills}`);
  assert.ok(report.longestWaitMs <= longestWaitMs, `somebody waited ${report.longestWaitMs} ms`);
}

type Stop = readonly [from: number, to: number];

class Scene {
  readonly registerPath: string;
  readonly counts = {
    acknowledged: 0,
    kills: 0,
    stops: 0,
    noticed: 0,
    refused: 0,
    longestWaitMs: 0,
  };
  readonly #ground: Ground;
  readonly #terms: TortureTerms;
  readonly #running = new Map<Child, Stop[]>();
  #holder: Child | null = null;
  #stopped: Child | null = null;
  #over = false;

  constructor(ground: Ground, terms: TortureTerms) {
    this.#ground = ground;
    this.#terms = terms;
    this.registerPath = join(ground.folder, "register.db");
  }

  async play(): Promise<void> {
    const { processes, forMs, killEveryMs } = this.#terms;
    const killer = setInterval(() => this.#kill(), killEveryMs);
    const end = forMs === Infinity ? undefined : setTimeout(() => this.#enough(), forMs);
    const stopping = this.#stopNowAndThen();
    try {
      await Promise.all(Array.from({ length: processes }, () => this.#share()));
    } finally {
      clearInterval(killer);
      clearTimeout(end);
      this.#over = true;
      await stopping;
    }
  }

  async #share(): Promise<void> {
    const { each, ttlMs, lingerMs } = this.#terms;
    for (let left = each; left > 0 && !this.#over; ) {
      const args = [this.#ground.url, this.registerPath, left, ttlMs, lingerMs].map(String);
      const child = this.#ground.child("increments", args);
      this.#running.set(child, []);
      for (let line = await child.line(); line !== null; line = await child.line()) {
        if (this.#hear(child, line.split(" "))) left--;
      }
      this.#running.delete(child);
      await child.exited;
      const { exitCode, signalCode } = child.process;
      assert.ok(exitCode === 0 || signalCode === "SIGKILL", `a worker ended with ${exitCode}`);
    }
  }

  /** Whether the line acknowledges an increment. */
  #hear(child: Child, [what, , askedAt, waitedMs]: string[]): boolean {
    const { counts } = this;
    if (what === "held") {
      this.#holder = child;
      const waited = Number(waitedMs) - this.#stoppedMs(child, Number(askedAt), Number(waitedMs));
      counts.longestWaitMs = Math.max(counts.longestWaitMs, waited);
      return false;
    }
    if (this.#holder === child) this.#holder = null;
    if (what === "did") counts.acknowledged++;
    else if (what === "FENCED_OUT") counts.refused++;
    else counts.noticed++;
    return what === "did";
  }

  #stoppedMs(child: Child, askedAt: number, waitedMs: number): number {
    const stops = this.#running.get(child) ?? [];
    const overlaps = stops.map(
      ([from, to]) => Math.min(to, askedAt + waitedMs) - Math.max(from, askedAt),
    );
    return overlaps.reduce((sum, ms) => sum + Math.max(0, ms), 0);
  }

  #kill(): void {
    const victim = this.#someone();
    // Most of the stopped must live to try their stale write.
    if (victim === this.#stopped && randomInt(10) > 0) return;
    if (victim?.process.kill("SIGKILL")) this.counts.kills++;
  }

  async #stopNowAndThen(): Promise<void> {
    const { stopMs } = this.#terms;
    while (stopMs > 0 && !this.#over) {
      await sleep(200 + randomInt(800));
      const victim = this.#holder ?? this.#someone();
      if (victim === undefined || !victim.process.kill("SIGSTOP")) continue;
      this.counts.stops++;
      this.#stopped = victim;
      const from = Date.now();
      await sleep(stopMs);
      victim.process.kill("SIGCONT");
      this.#stopped = null;
      this.#running.get(victim)?.push([from, Date.now()]);
    }
  }

  #someone(): Child | undefined {
    const children = [...this.#running.keys()];
    return children.length > 0 ? children[randomInt(children.length)] : undefined;
  }

  #enough(): void {
    this.#over = true;
    for (const child of this.#running.keys()) child.say("enough");
  }
}

/** So many increments of each process, none of which may be lost, nor wait for long. */
export async function addUp(each: number): Promise<void> {
  const ttlMs = 2_000;
  const report = await torture({
    processes: 8,
    each,
    forMs: Infinity,
    ttlMs,
    lingerMs: 0,
    killEveryMs: 200,
    stopMs: 0,
  });
  judge(report, ttlMs + 1_000);
}
