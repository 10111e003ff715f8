import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { startRedis } from "@holdfast/servers";
import { type Child, CLIENT_NAMES, Ground } from "./ground.fixture.js";
import { Register, type Write } from "./register.fixture.js";

export interface TortureTerms {
  readonly seed: number;
  readonly forMs: number;
  readonly ttlMs: number;
  readonly killEveryMs: number;
  readonly cutEveryMs: number;
  /** How long a holder is stopped, now and then; longer than ttlMs. */
  readonly stopMs: number;
}

export interface TortureReport {
  readonly kills: number;
  readonly stops: number;
  readonly cuts: number;
  readonly acknowledged: number;
  /** How often the register refused a stale token. */
  readonly refused: number;
  /** How often a holder found that its own lease was lost, before it wrote. */
  readonly noticed: number;
  readonly failed: number;
  /** As the waiters counted it, less what they were stopped for. */
  readonly longestWaitMs: number;
  readonly writes: readonly Write[];
}

const PROCESSES = 4;

/** Processes that count in one register under one lock, while they are killed, stopped and cut off. */
export async function torture(terms: TortureTerms): Promise<TortureReport> {
  await using ground = await Ground.start();
  await using store = await startRedis();
  const scene = new Scene(ground, store.port, terms);
  await scene.play();
  const register = new Register(store.port);
  const writes = await register.history("number");
  register.close();
  return { ...scene.counts, writes };
}

/** What must be true of every torture, however long it was. */
export function judge(report: TortureReport, longestWaitMs: number): void {
  const { writes, acknowledged, kills } = report;
  console.log(JSON.stringify({ ...report, writes: writes.length }));
  for (const [i, { token, value }] of writes.entries()) {
    const before = writes[i - 1] ?? { token: 0n, value: 0 };
    assert.ok(token > before.token, `token ${token} was accepted after ${before.token}`);
    assert.equal(value, before.value + 1, `token ${token} overwrote what it had not seen`);
  }
  assert.ok(acknowledged <= writes.length, "an acknowledged write is missing");
  // A process has two loops, and each may be killed between its write and its word.
  assert.ok(writes.length <= acknowledged + 2 * (kills + PROCESSES));
  assert.ok(report.longestWaitMs <= longestWaitMs, `somebody waited ${report.longestWaitMs} ms`);
  // Without these, nothing was tried.
  assert.ok(kills > 0 && report.stops > 0 && report.cuts > 0);
}

type Stop = readonly [from: number, to: number];

class Scene {
  readonly counts = {
    ...{ kills: 0, stops: 0, cuts: 0, acknowledged: 0, refused: 0, noticed: 0, failed: 0 },
    longestWaitMs: 0,
  };
  readonly #ground: Ground;
  readonly #registerPort: number;
  readonly #terms: TortureTerms;
  readonly #random: (below: number) => number;
  readonly #running = new Map<Child, Stop[]>();
  #holder: Child | null = null;
  #stopped: Child | null = null;
  #onHeld: ((child: Child) => void) | null = null;
  #over = false;

  constructor(ground: Ground, registerPort: number, terms: TortureTerms) {
    this.#ground = ground;
    this.#registerPort = registerPort;
    this.#terms = terms;
    this.#random = seeded(terms.seed);
  }

  async play(): Promise<void> {
    const { forMs, killEveryMs, cutEveryMs } = this.#terms;
    const killer = setInterval(() => this.#kill(), killEveryMs);
    const cutter = setInterval(() => this.#cut(), cutEveryMs);
    const stopping = this.#stopNowAndThen();
    const shares = Array.from({ length: PROCESSES }, (_, i) => this.#share(i));
    await sleep(forMs);
    this.#over = true;
    clearInterval(killer);
    clearInterval(cutter);
    await stopping;
    for (const child of this.#running.keys()) child.say("enough");
    await Promise.all(shares);
  }

  async #share(index: number): Promise<void> {
    while (!this.#over) {
      const ports = [this.#ground.server.port, this.#registerPort].map(String);
      const args = [...ports, String(this.#terms.ttlMs), CLIENT_NAMES[index % 2]!];
      const child = this.#ground.child("increments", args);
      this.#running.set(child, []);
      for (let line = await child.line(); line !== null; line = await child.line()) {
        this.#hear(child, line.split(" "));
      }
      this.#running.delete(child);
      if (this.#holder === child) this.#holder = null;
      const { exitCode } = child.process;
      assert.ok(exitCode === null || exitCode === 0, `a process ended with ${exitCode}`);
    }
  }

  #hear(child: Child, [what, , askedAt, waitedMs]: string[]): void {
    const { counts } = this;
    if (what === "asks") return;
    if (what === "held") {
      this.#holder = child;
      this.#onHeld?.(child);
      const waited = Number(waitedMs) - this.#stoppedMs(child, Number(askedAt), Number(waitedMs));
      counts.longestWaitMs = Math.max(counts.longestWaitMs, Math.round(waited));
      return;
    }
    if (this.#holder === child) this.#holder = null;
    if (what === "did") counts.acknowledged++;
    else if (what === "FENCED_OUT") counts.refused++;
    else if (what === "LEASE_LOST") counts.noticed++;
    else if (what === "ENGINE") counts.failed++;
    else assert.fail(`a process said ${what}`);
  }

  #stoppedMs(child: Child, askedAt: number, waitedMs: number): number {
    const stops = this.#running.get(child) ?? [];
    const overlaps = stops.map(
      ([from, to]) => Math.min(to, askedAt + waitedMs) - Math.max(from, askedAt),
    );
    return overlaps.reduce((sum, ms) => sum + Math.max(0, ms), 0);
  }

  #kill(): void {
    const victim = this.#random(2) === 0 ? this.#someone() : (this.#holder ?? this.#someone());
    // The stopped must live to try their stale write.
    if (victim === undefined || victim === this.#stopped) return;
    if (victim.process.kill("SIGKILL")) this.counts.kills++;
  }

  /** Kills a connection of anybody, for commands or for pushes. */
  async #cut(): Promise<void> {
    const list = (await this.#ground.admin.call("CLIENT", "LIST")) as string;
    const own = await this.#ground.admin.client("ID");
    const ids = [...list.matchAll(/^id=(\d+)/gm)].map(([, id]) => id!);
    const others = ids.filter((id) => id !== String(own));
    const victim = others[this.#random(Math.max(1, others.length))];
    if (victim === undefined) return;
    await this.#ground.admin.call("CLIENT", "KILL", "ID", victim);
    this.counts.cuts++;
  }

  async #stopNowAndThen(): Promise<void> {
    while (!this.#over) {
      await sleep(200 + this.#random(600));
      // Most of them right after they got the lock, in the middle of their work.
      const held = new Promise<Child>((hear) => {
        this.#onHeld = hear;
      });
      const victim = await Promise.race([held, sleep(500).then(() => this.#someone())]);
      this.#onHeld = null;
      if (!victim?.process.kill("SIGSTOP")) continue;
      this.counts.stops++;
      this.#stopped = victim;
      const from = Date.now();
      await sleep(this.#terms.stopMs);
      victim.process.kill("SIGCONT");
      this.#stopped = null;
      this.#running.get(victim)?.push([from, Date.now()]);
    }
  }

  #someone(): Child | undefined {
    const children = [...this.#running.keys()];
    return children[this.#random(Math.max(1, children.length))];
  }
}

/** Numbers that are the same for the same seed (mulberry32). */
function seeded(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % below;
  };
}
