import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { mock, test } from "node:test";
import { hostTimer } from "./clock.js";
import { Timers } from "./timers.js";

const HOST = { now: () => performance.now(), timer: hostTimer };

/** The host's timers and its clock, moved by hand. */
function stage(t: { after(fn: () => void): void }) {
  mock.timers.enable({ apis: ["setTimeout"] });
  t.after(() => mock.timers.reset());
  let now = 1_000.5;
  let looks = 0;
  const read = () => {
    looks++;
    return now;
  };
  const timers = new Timers({ now: read, timer: hostTimer });
  const rung: string[] = [];
  const set = (name: string, delayMs: number, keepAlive = true) =>
    timers.set(delayMs, () => rung.push(name), keepAlive);
  const pass = (ms: number) => {
    for (let i = 0; i < ms; i++) {
      now += 1;
      mock.timers.tick(1);
    }
  };
  return { timers, rung, set, pass, looks: () => looks };
}

test("each rings once, in the order in which they are due", (t) => {
  const { rung, set, pass } = stage(t);
  set("late", 30);
  set("soon", 10);
  set("between", 20);
  pass(9);
  assert.deepEqual(rung, []);
  pass(2);
  assert.deepEqual(rung, ["soon"]);
  pass(100);
  assert.deepEqual(rung, ["soon", "between", "late"]);
});

test("one that is cancelled never rings, and the others do", (t) => {
  const { rung, set, pass } = stage(t);
  const timers = [set("a", 10), set("b", 10), set("c", 20)];
  timers[0]!.cancel();
  timers[0]!.cancel();
  pass(30);
  assert.deepEqual(rung, ["b", "c"]);
  timers[1]!.cancel();
});

test("one that is set by another's callback rings, and none rings in the same turn", (t) => {
  const { timers, rung, set, pass } = stage(t);
  timers.set(10, () => set("child", 0), true);
  pass(10);
  assert.deepEqual(rung, []);
  pass(2);
  assert.deepEqual(rung, ["child"]);
});

test("one that throws does not keep the others from ringing", (t) => {
  const { timers, rung, set, pass } = stage(t);
  const failure = new Error("a callback's own");
  timers.set(
    10,
    () => {
      throw failure;
    },
    true,
  );
  set("after", 10);
  assert.throws(() => pass(11), failure);
  pass(2);
  assert.deepEqual(rung, ["after"]);
});

test("longer than the host's timers can count is no shorter", (t) => {
  const { timers, rung, set, pass } = stage(t);
  set("long", 2 ** 31);
  timers.set(Number.MAX_SAFE_INTEGER, () => assert.fail("much too early"), false);
  pass(3_000);
  assert.deepEqual(rung, []);
});

test("while nothing is set, the host is left alone; after a second at most", (t) => {
  const { set, pass, looks } = stage(t);
  for (let i = 0; i < 100; i++) set("never", 5_000).cancel();
  pass(1_100);
  const before = looks();
  pass(5_000);
  assert.equal(looks(), before);
});

test("a hundred that come and go set the host's timer once", (t) => {
  const host = t.mock.method(globalThis, "setTimeout");
  const timers = new Timers(HOST);
  for (let i = 0; i < 100; i++) timers.set(5_000, () => {}, true).cancel();
  assert.equal(host.mock.callCount(), 1);
});

test("whoever sets the host's timer does not lend its context to others", async () => {
  const context = new AsyncLocalStorage<string>();
  const timers = new Timers(HOST);
  const seen = await context.run("mine", () => {
    return new Promise((go) => timers.set(1, () => go(context.getStore()), true));
  });
  assert.equal(seen, undefined);
});

test("only those that keep alive hold the process, each as long as it is set", () => {
  const holding = () => process.getActiveResourcesInfo().filter((r) => r === "Timeout").length;
  const before = holding();
  const timers = new Timers(HOST);
  const free = timers.set(60_000, () => {}, false);
  assert.equal(holding(), before);
  const kept = [1, 2].map(() => timers.set(60_000, () => {}, true));
  assert.equal(holding(), before + 1);
  assert.equal(timers.keepingAlive, 2);
  kept[0]!.cancel();
  assert.equal(holding(), before + 1);
  kept[1]!.cancel();
  assert.equal(holding(), before);
  free.cancel();
});
