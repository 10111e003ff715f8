import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { startZooKeeperEnsemble, type ZooKeeperEnsemble } from "@holdfast/servers";
import { hostInstant } from "../../clock.js";

const PROCESSES = 4;
const DOWN_MS = 1_500;
const STOP_EVERY_MS = 2_000;
const MAIN = fileURLToPath(new URL("./increments.fixture.js", import.meta.url));

export interface Asked {
  readonly says: "asks";
  readonly id: number;
  readonly verb: "read" | "write";
  readonly token: string;
  readonly value?: number;
}

export interface Answered {
  readonly id: number;
  /** Null for a token that came too late. */
  readonly value: number | null;
}

export type Said =
  | Asked
  | { readonly says: "held"; readonly token: string; readonly from: number; readonly to: number }
  | { readonly says: "failed"; readonly code: string };

interface Interval {
  readonly token: bigint;
  readonly from: number;
  readonly to: number;
}

export interface TortureReport {
  readonly kills: number;
  readonly stops: number;
  readonly accepted: number;
  readonly refused: number;
  readonly failures: Readonly<Record<string, number>>;
  readonly longestGapMs: number;
  readonly intervals: number;
}

/** Processes that count in one register under one lock, while leaders die and holders are stopped. */
export async function torture(forMs: number, ttlMs: number): Promise<TortureReport> {
  await using ensemble = await startZooKeeperEnsemble();
  const scene = new Scene(ensemble);
  const args = [ensemble.url, String(ttlMs)];
  const children = Array.from({ length: PROCESSES }, () => scene.start(args));
  try {
    await scene.untilWritten(1);
    const stopping = scene.stopNowAndThen(ttlMs * 1.7);
    const end = hostInstant() + forMs;
    while (hostInstant() < end) {
      await sleep(Math.min(5_000 - DOWN_MS, end - hostInstant()));
      await scene.killLeader();
    }
    scene.over = true;
    await stopping;
    // Everyone makes progress again once the last of it is over.
    await scene.untilWritten(scene.writes.length + PROCESSES);
    await Promise.all(children.map((child) => scene.end(child)));
  } finally {
    for (const child of children) child.kill("SIGKILL");
  }
  return scene.judge();
}

class Scene {
  over = false;
  readonly writes: { token: bigint; at: number }[] = [];
  readonly #ensemble: ZooKeeperEnsemble;
  readonly #intervals: Interval[] = [];
  readonly #failures: Record<string, number> = {};
  #seen = 0n;
  #value = 0;
  #refused = 0;
  #kills = 0;
  #stops = 0;
  #onRead: ((child: ChildProcess) => void) | null = null;

  constructor(ensemble: ZooKeeperEnsemble) {
    this.#ensemble = ensemble;
  }

  start(args: readonly string[]): ChildProcess {
    const stdio = ["ignore", "ignore", "inherit", "ipc"] as const;
    const child = spawn(process.execPath, [MAIN, ...args], { stdio: [...stdio] });
    child.on("message", (message) => {
      const said = message as Said;
      if (said.says === "asks") {
        child.send({ id: said.id, value: this.#answer(said) });
        if (said.verb === "read") this.#onRead?.(child);
      }
      if (said.says === "failed") {
        this.#failures[said.code] = (this.#failures[said.code] ?? 0) + 1;
      }
      if (said.says === "held") this.#intervals.push({ ...said, token: BigInt(said.token) });
    });
    return child;
  }

  async end(child: ChildProcess): Promise<void> {
    const exited = once(child, "exit");
    child.send("enough");
    const [code] = await exited;
    assert.equal(code, 0, "a process ended in an error");
  }

  async killLeader(): Promise<void> {
    const leader = await this.#ensemble.leader();
    await leader.kill();
    this.#kills++;
    await sleep(DOWN_MS);
    await leader.start();
  }

  /** Stopped in the middle of its work for longer than its session lives; then it goes on. */
  async stopNowAndThen(stopMs: number): Promise<void> {
    while (!this.over) {
      await sleep(STOP_EVERY_MS);
      const read = new Promise<ChildProcess>((hear) => {
        this.#onRead = hear;
      });
      const holder = await Promise.race([read, sleep(STOP_EVERY_MS)]);
      this.#onRead = null;
      if (holder === undefined) continue;
      holder.kill("SIGSTOP");
      this.#stops++;
      await sleep(stopMs);
      holder.kill("SIGCONT");
    }
  }

  async untilWritten(count: number): Promise<void> {
    const deadline = hostInstant() + 20_000;
    while (this.writes.length < count) {
      assert.ok(hostInstant() < deadline, `${this.writes.length} writes instead of ${count}`);
      await sleep(20);
    }
  }

  judge(): TortureReport {
    const intervals = this.#intervals.toSorted((a, b) => a.from - b.from);
    for (const [i, { token, from }] of intervals.entries()) {
      const before = intervals[i - 1];
      if (before === undefined) continue;
      assert.ok(token > before.token, `token ${token} was held after ${before.token}`);
      const overMs = before.to - from;
      assert.ok(overMs <= 0, `${before.token} and ${token} were both held for ${overMs} ms`);
    }
    for (const [i, { token }] of this.writes.entries()) {
      if (i > 0) assert.ok(token > this.writes[i - 1]!.token, "tokens of writes rise");
    }
    const gaps = this.writes.slice(1).map(({ at }, i) => at - this.writes[i]!.at);
    const report = {
      ...{ kills: this.#kills, stops: this.#stops, refused: this.#refused },
      ...{ accepted: this.writes.length, failures: this.#failures },
      ...{ longestGapMs: Math.round(Math.max(...gaps)), intervals: intervals.length },
    };
    console.log(JSON.stringify(report));
    // Without these, nothing was tried.
    assert.ok(report.kills > 0 && report.stops > 0 && intervals.length > PROCESSES);
    return report;
  }

  /** Reading raises the mark too: else a stale writer could slip in between. */
  #answer({ verb, token, value }: Asked): number | null {
    const shown = BigInt(token);
    if (shown < this.#seen) {
      this.#refused++;
      return null;
    }
    this.#seen = shown;
    if (verb === "read") return this.#value;
    assert.equal(value, this.#value + 1, `token ${token} overwrote what it had not seen`);
    this.#value = value;
    this.writes.push({ token: shown, at: hostInstant() });
    return this.#value;
  }
}
