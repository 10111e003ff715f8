import assert from "node:assert";
import { test } from "node:test";
import { sleep } from "../core/runtime/clock.js";
import { memoryEngine } from "../engines/memory/index.js";
import { LeaseLostError } from "../errors.js";
import { Locks } from "../locks.js";
import { ManualClock } from "./manual-clock.js";

test("a manual clock stands still until it is advanced", async () => {
  const clock = new ManualClock(500);
  let ran = 0;
  clock.timer(10, () => ran++, true);
  await new Promise<void>((go) => setImmediate(go));
  assert.deepEqual([clock.now(), ran, clock.timers], [500, 0, 1]);
  await clock.advance(9);
  assert.deepEqual([clock.now(), ran], [509, 0]);
  await clock.advance(1);
  assert.deepEqual([clock.now(), ran, clock.timers], [510, 1, 0]);
});

test("due timers run in order, each at its own instant", async () => {
  const clock = new ManualClock(0);
  const seen: [string, number][] = [];
  const note = (name: string) => () => seen.push([name, clock.now()]);
  clock.timer(30, note("third"), true);
  clock.timer(10, note("first"), true);
  clock.timer(10, note("second"), false);
  await clock.advance(100);
  assert.deepEqual(seen, [
    ["first", 10],
    ["second", 10],
    ["third", 30],
  ]);
  assert.equal(clock.now(), 100);
});

test("what a timer starts settles before the next one runs", async () => {
  const clock = new ManualClock(0);
  const seen: string[] = [];
  const chain = async () => {
    await sleep(clock, 10, undefined);
    await Promise.resolve();
    seen.push(`woke at ${clock.now()}`);
    await sleep(clock, 10, undefined);
    seen.push(`again at ${clock.now()}`);
  };
  const done = chain();
  clock.timer(15, () => seen.push("between"), true);
  await clock.advance(50);
  await done;
  assert.deepEqual(seen, ["woke at 10", "between", "again at 20"]);
});

test("a cancelled timer does not run, and keeps nothing alive", async () => {
  const clock = new ManualClock();
  const timer = clock.timer(5, () => assert.fail("cancelled"), true);
  clock.timer(1_000, () => {}, false);
  assert.equal(clock.keepingAlive, 1);
  timer.cancel();
  assert.deepEqual([clock.timers, clock.keepingAlive], [1, 0]);
  await clock.advance(10);
});

test("a pause lets time pass without running anything", async () => {
  const clock = new ManualClock();
  const locks = new Locks(memoryEngine(), { clock });
  const lease = await locks.acquire("door", { ttlMs: 10_000 });
  clock.pause(20_000);
  // No timer ran and no renewal was sent: only the clock shows the loss.
  assert.equal(lease.held, false);
  assert.throws(() => lease.assertHeld(), LeaseLostError);
  await locks.close();
});

test("a lease stays alive over hours of simulated time", async () => {
  const clock = new ManualClock();
  const locks = new Locks(memoryEngine(), { clock });
  const lease = await locks.acquire("door", { ttlMs: 60_000 });
  await clock.advance(3_600_000);
  assert.equal(lease.held, true);
  clock.step();
  await clock.advance(2_000);
  assert.equal(lease.held, true);
  assert.equal(await lease.release(), "released");
  await locks.close();
  assert.equal(clock.timers, 0, "nothing is left to run");
});
