import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryEngine } from "../../engines/memory/index.js";
import { EngineError } from "../../errors.js";
import { Locks } from "../../locks.js";
import { gate, outcomeOf, setUp } from "../test/set-up.fixture.js";

const MANY = 100_000;
// Leaving takes a third of the time of joining. A search for each waiter made it three times as
// long.
const MOST = 1;
const TRIES = 3;

test("a hundred thousand local waiters that one signal aborts leave as fast as they came", async () => {
  const tries: string[] = [];
  for (let i = 0; i < TRIES; i++) {
    await using locks = new Locks(memoryEngine());
    const holder = await locks.acquire("a");
    const controller = new AbortController();
    const options = { signal: controller.signal, waitMs: Infinity };
    const started = process.cpuUsage();
    const waiting = Array.from({ length: MANY }, () => outcomeOf(locks.acquire("a", options)));
    await new Promise((turned) => setImmediate(turned));
    const joined = spent(process.cpuUsage(started));
    const aborted = process.cpuUsage();
    controller.abort(new Error("enough"));
    for (const outcome of await Promise.all(waiting)) assert.ok(outcome instanceof Error);
    const left = spent(process.cpuUsage(aborted));
    await holder.release();
    if (left <= joined * MOST) return;
    tries.push(`${left} ms to leave, ${joined} ms to join`);
  }
  assert.fail(tries.join("; "));
});

function spent({ user, system }: NodeJS.CpuUsage): number {
  return Math.round((user + system) / 1_000);
}

test("a waiter whose claim is not answered times out, and leaves the claim to the others", async () => {
  const { clock, engine, locks, other } = setUp({ cohort: { handOvers: 0 } });
  const { opened, open } = gate();
  const lease = await locks.acquire("a");
  const rival = other.acquire("a");
  engine.inject("enqueue", { kind: "hold-reply", until: opened });
  const ends: unknown[] = [];
  const waiting = outcomeOf(locks.acquire("a", { waitMs: 100 })).then((end) => ends.push(end));
  const behind = locks.acquire("a", { waitMs: 60_000 });
  await lease.release();
  await rival;
  await clock.advance(99);
  assert.equal(ends.length, 0);
  await clock.advance(51);
  await waiting;
  assert.ok(ends[0] instanceof EngineError, "the backend has not said anything to its claim");
  open();
  await (await rival).release();
  assert.ok((await behind).held);
});
