import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "../../connect.js";
import { hostInstant } from "../../core/runtime/clock.js";
import { type Random, randomOf } from "../seeded-random.fixture.js";
import { holdsOf } from "./checker.fixture.js";
import { contended, type RecordReading } from "./history.fixture.js";
import type { Place } from "./place.fixture.js";
import { isWeak, notRecovered, verdict } from "./verdict.fixture.js";
import { Workers } from "./workers.fixture.js";

const READ_EVERY_MS = 15;
/** The time without faults at the end, in which every process must recover. */
const QUIET_MS = 4_000;
/** On a busy machine the recovery takes longer. */
const MOST_QUIET_MS = 60_000;

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
    await nothingIsLeft(place);
  } finally {
    await run.end();
  }
}

/** Inflicts faults, and reads the backend's record at the same time. */
class TortureRun {
  readonly #place: Place;
  readonly #terms: TortureTerms;
  readonly #random: Random;
  readonly #workers: Workers;
  readonly #readings: RecordReading[] = [];
  readonly #faults: Record<string, number> = {};
  #unread = 0;
  #isOver = false;
  #quietFrom = Infinity;

  constructor(place: Place, terms: TortureTerms) {
    this.#place = place;
    this.#terms = terms;
    this.#random = randomOf(terms.seed);
    this.#workers = new Workers(place, terms.seed);
  }

  async contend(): Promise<void> {
    this.#workers.start();
    const until = hostInstant() + this.#terms.forMs;
    const disturbances = [this.#disturbProcesses(until), this.#disturbBackend(until)];
    const reading = this.#readTruth();
    await Promise.all(disturbances);
    this.#quietFrom = hostInstant();
    do await sleep(QUIET_MS);
    while (!this.#allRecovered() && hostInstant() < this.#quietFrom + MOST_QUIET_MS);
    this.#isOver = true;
    await Promise.all([reading, this.#workers.finish()]);
  }

  judge(): void {
    verdict(this.#place, this.#terms, this.#workers, {
      readings: this.#readings,
      unread: this.#unread,
      faults: this.#faults,
      quietFrom: this.#quietFrom,
    });
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await this.#workers.end();
  }

  /**
   * Kills and stops processes. A stopped one continues after its ttl and tries what it no longer
   * may.
   */
  async #disturbProcesses(until: number): Promise<void> {
    const { ttlMs } = this.#place;
    while (this.#continues(until)) {
      await sleep(150 + this.#random(500));
      const victim = this.#workers.pick(this.#random);
      if (victim === undefined) continue;
      if (this.#random(3) === 0) {
        if (this.#workers.kill(victim)) this.#count("kill");
        continue;
      }
      if (!this.#workers.stop(victim)) continue;
      this.#count("stop");
      await sleep(this.#random(2) === 0 ? this.#random(ttlMs) : ttlMs * 1.3);
      this.#workers.resume(victim);
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
    for (let turn = 0; !this.#isOver; turn++) {
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
    if (hostInstant() >= until + this.#terms.forMs * 9) return false;
    return isWeak(this.#place, this.#terms, () => this.#workers.entries(), this.#faults);
  }

  #allRecovered(): boolean {
    const holds = holdsOf(this.#workers.entries());
    return notRecovered(this.#place, holds, this.#quietFrom).length === 0;
  }

  #count(fault: string): void {
    this.#faults[fault] = (this.#faults[fault] ?? 0) + 1;
  }
}

/** All processes have ended: nobody may wait, and every grant must end within its ttl. */
async function nothingIsLeft({ directUrl, ttlMs, can }: Place): Promise<void> {
  const locks = await connect(directUrl, { defaults: { ttlMs } });
  const deadline = hostInstant() + ttlMs * 3 + 30_000;
  try {
    for (const { name } of contended(can)) {
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
