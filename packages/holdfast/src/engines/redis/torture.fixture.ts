import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { type SentinelServers, startRedis } from "@holdfast/servers";
import type { Redis } from "ioredis";
import { crash, Field } from "./field.fixture.js";
import { type Child, CLIENT_NAMES, type ClientName, Ground } from "./ground.fixture.js";
import { Register, type Write } from "./register.fixture.js";

export interface TortureTerms {
  readonly seed: number;
  readonly forMs: number;
  readonly ttlMs: number;
  readonly killEveryMs: number;
  readonly cutEveryMs: number;
  /** How long a holder is stopped, now and then; longer than ttlMs. */
  readonly stopMs: number;
  /** Goes on until the register has refused somebody, for twice as long at most. */
  readonly wantsRefusal?: boolean;
  /** On servers watched by Sentinels; in the middle the primary is killed. */
  readonly failover?: boolean;
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
  await using field = terms.failover ? await Field.sentinel() : null;
  await using ground = field === null ? await Ground.start() : null;
  await using store = await startRedis();
  const scene = new Scene(placeOf(field, ground), store.port, terms);
  await scene.play();
  using register = new Register(store.port);
  const writes = await register.history("number");
  return { ...scene.counts, writes };
}

/** Where it takes place. */
interface Place {
  readonly url: string;
  readonly clients: readonly ClientName[];
  readonly admin: Redis;
  child(fixture: string, args: readonly string[]): Child;
  /** Kills the primary; resolves when another has taken its place. */
  failOver(): Promise<void>;
}

function placeOf(field: Field<SentinelServers> | null, ground: Ground | null): Place {
  if (field === null) {
    const { server, admin } = ground!;
    const failOver = () => Promise.reject(new Error("nobody takes its place"));
    const child: Place["child"] = (fixture, args) => ground!.child(fixture, args);
    return { url: server.url, clients: CLIENT_NAMES, admin, child, failOver };
  }
  return {
    url: field.topology.url,
    // By the URL, which takes ioredis.
    clients: ["node-redis"],
    admin: field.topology.admin as Redis,
    child: (fixture, args) => field.child(fixture, args),
    failOver: async () => {
      const primary = await field.servers.primary();
      crash(primary);
      await field.servers.failedOver(primary);
    },
  };
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
  readonly #place: Place;
  readonly #registerPort: number;
  readonly #terms: TortureTerms;
  readonly #random: (below: number) => number;
  readonly #running = new Map<Child, Stop[]>();
  #holder: Child | null = null;
  #stopped: Child | null = null;
  #onHeld: ((child: Child) => void) | null = null;
  #over = false;
  #failedOverAt = 0;

  constructor(place: Place, registerPort: number, terms: TortureTerms) {
    this.#place = place;
    this.#registerPort = registerPort;
    this.#terms = terms;
    this.#random = seeded(terms.seed);
  }

  async play(): Promise<void> {
    const { forMs, killEveryMs, cutEveryMs } = this.#terms;
    const killer = setInterval(() => this.#kill(), killEveryMs);
    const cutter = setInterval(() => void this.#cut().catch(() => {}), cutEveryMs);
    const stopping = this.#stopNowAndThen();
    const shares = Promise.all(Array.from({ length: PROCESSES }, (_, i) => this.#share(i)));
    // Told at the end, when everything else has been put in order.
    shares.catch(() => {});
    await sleep(forMs / 2);
    if (this.#terms.failover) {
      await this.#place.failOver();
      this.#failedOverAt = Date.now();
    }
    await sleep(forMs / 2);
    await this.#untilRefused();
    this.#over = true;
    clearInterval(killer);
    clearInterval(cutter);
    await stopping;
    for (const child of this.#running.keys()) child.say("enough");
    await shares;
  }

  /** On a busy machine little happens in that time; what must be seen is given as much again. */
  async #untilRefused(): Promise<void> {
    const { forMs, wantsRefusal = false } = this.#terms;
    const deadline = Date.now() + forMs;
    while (wantsRefusal && this.counts.refused === 0 && Date.now() < deadline) await sleep(100);
  }

  async #share(index: number): Promise<void> {
    while (!this.#over) {
      const { url, clients } = this.#place;
      const numbers = [this.#registerPort, this.#terms.ttlMs].map(String);
      const client = clients[index % clients.length]!;
      const child = this.#place.child("increments", [url, ...numbers, client]);
      this.#running.set(child, []);
      for (let line = await child.line(); line !== null; line = await child.line()) {
        this.#hear(child, line.split(" "));
      }
      this.#running.delete(child);
      if (this.#holder === child) this.#holder = null;
      await child.ended();
    }
  }

  #hear(child: Child, [what, , askedAt, waitedMs]: string[]): void {
    const { counts } = this;
    if (what === "asks") return;
    if (what === "held") {
      this.#holder = child;
      this.#onHeld?.(child);
      const until = Number(askedAt) + Number(waitedMs);
      // Nobody can be granted anything before the failover is over.
      const from = Math.max(Number(askedAt), Math.min(this.#failedOverAt, until));
      const waited = until - from - this.#stoppedMs(child, from, until - from);
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
    const list = (await this.#place.admin.call("CLIENT", "LIST")) as string;
    const own = await this.#place.admin.client("ID");
    const ids = [...list.matchAll(/^id=(\d+)/gm)].map(([, id]) => id!);
    const others = ids.filter((id) => id !== String(own));
    const victim = others[this.#random(Math.max(1, others.length))];
    if (victim === undefined) return;
    await this.#place.admin.call("CLIENT", "KILL", "ID", victim);
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
