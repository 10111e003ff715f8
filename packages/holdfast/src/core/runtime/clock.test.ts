import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { ManualClock } from "../../testing/index.js";
import { hostInstant, sleep, systemClock } from "./clock.js";

test("the system clock never goes back, and keeps pace with the host's monotonic clock", () => {
  let last = systemClock.now();
  const host = hostInstant() - last;
  for (let i = 0; i < 10_000; i++) {
    const now = systemClock.now();
    assert.ok(now >= last);
    last = now;
  }
  assert.ok(Math.abs(hostInstant() - systemClock.now() - host) < 2_000);
});

test("hostInstant reads the host's monotonic clock, the same in every process", () => {
  const monotonic = () => Number(process.hrtime.bigint()) / 1e6;
  for (let i = 0; i < 100; i++) {
    const before = monotonic();
    const instant = hostInstant();
    const after = monotonic();
    assert.ok(instant > before - 0.01 && instant < after + 0.01, `${before} ${instant} ${after}`);
  }
});

test("a timer calls back once, no sooner than a millisecond before its time", async () => {
  const begun = systemClock.now();
  let calls = 0;
  await new Promise<void>((go) => {
    systemClock.timer(
      20.5,
      () => {
        calls++;
        go();
      },
      true,
    );
  });
  assert.ok(systemClock.now() - begun >= 19.5);
  await new Promise((go) => setTimeout(go, 30));
  assert.equal(calls, 1);
});

test("a timer that is cancelled never calls back", async () => {
  let called = false;
  const timer = systemClock.timer(
    5,
    () => {
      called = true;
    },
    true,
  );
  timer.cancel();
  timer.cancel();
  await new Promise((go) => setTimeout(go, 20));
  assert.equal(called, false);
});

test("a timer longer than 31 bits does not fire at once, and can be cancelled in any piece", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const longMs = 2 ** 31 * 2;
  let calls = 0;
  const count = () => {
    calls++;
  };
  systemClock.timer(longMs, count, false);
  const cancelled = systemClock.timer(longMs, () => assert.fail("it was cancelled"), false);
  t.mock.timers.tick(1);
  assert.equal(calls, 0);
  t.mock.timers.tick(2 ** 31 - 1);
  assert.equal(calls, 0);
  cancelled.cancel();
  t.mock.timers.tick(2 ** 31 - 2);
  assert.equal(calls, 0);
  t.mock.timers.tick(2);
  t.mock.timers.tick(2);
  assert.equal(calls, 1);
});

test("a timer of no or negative delay calls back soon, never in the same tick", async () => {
  for (const delayMs of [0, -5]) {
    let called = false;
    const done = new Promise<void>((go) => {
      systemClock.timer(
        delayMs,
        () => {
          called = true;
          go();
        },
        true,
      );
    });
    assert.equal(called, false);
    await done;
  }
});

test("only a timer with keepAlive keeps the process alive", async () => {
  const turned = () => new Promise((resolve) => setImmediate(resolve));
  const holding = () => process.getActiveResourcesInfo().filter((r) => r === "Timeout").length;
  const before = holding();
  const free = systemClock.timer(60_000, () => {}, false);
  await turned();
  assert.equal(holding(), before);
  const kept = systemClock.timer(60_000, () => {}, true);
  await turned();
  assert.equal(holding(), before + 1);
  free.cancel();
  kept.cancel();
  assert.equal(holding(), before);
});

test("a jump of the wall clock is counted and does not move now()", (t) => {
  const steps = systemClock.steps;
  const before = systemClock.now();
  const real = Date.now;
  t.mock.method(Date, "now", () => real() + 3_600_000);
  const after = systemClock.now();
  assert.equal(systemClock.steps, steps + 1);
  assert.ok(after - before < 1_000, "an hour of wall time is not an hour");
  systemClock.now();
  assert.equal(systemClock.steps, steps + 1, "one jump is one step");
  t.mock.restoreAll();
  systemClock.now();
  assert.equal(systemClock.steps, steps + 2, "and back is another");
});

// The process may be preempted on a busy machine, or stopped by the garbage collector.
test("a pause between reading two clocks is not taken for a jump", (t) => {
  const steps = systemClock.steps;
  const real = Date.now;
  const paused = t.mock.method(Date, "now", () => {
    const until = hostInstant() + 40;
    while (hostInstant() < until);
    return real.call(Date);
  });
  systemClock.now();
  paused.mock.restore();
  systemClock.now();
  assert.equal(systemClock.steps, steps);
});

test("sleep ends in time and leaves no listener", async () => {
  const clock = new ManualClock();
  const { signal } = new AbortController();
  let woken = false;
  const sleeping = sleep(clock, 100, signal).then(() => {
    woken = true;
  });
  await clock.advance(99);
  assert.equal(woken, false);
  await clock.advance(1);
  await sleeping;
  assert.equal(getEventListeners(signal, "abort").length, 0);
});

test("an aborted sleep rejects with the reason, and leaves neither timer nor listener", async () => {
  const clock = new ManualClock();
  const controller = new AbortController();
  const sleeping = sleep(clock, 100, controller.signal);
  const reason = new Error("enough");
  controller.abort(reason);
  await assert.rejects(sleeping, reason);
  assert.equal(clock.timers, 0);
  assert.equal(getEventListeners(controller.signal, "abort").length, 0);
});

test("sleep under an aborted signal rejects without a timer", async () => {
  const clock = new ManualClock();
  const reason = new Error("before");
  await assert.rejects(sleep(clock, 100, AbortSignal.abort(reason)), reason);
  assert.equal(clock.timers, 0);
});

test("sleep keeps the process alive unless told not to", () => {
  const clock = new ManualClock();
  void sleep(clock, 100, undefined);
  assert.equal(clock.keepingAlive, 1);
  void sleep(clock, 100, undefined, false);
  assert.equal(clock.keepingAlive, 1);
});
