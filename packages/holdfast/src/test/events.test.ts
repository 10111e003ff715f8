import assert from "node:assert/strict";
import { channel } from "node:diagnostics_channel";
import { afterEach, test } from "node:test";
import { inspect } from "node:util";
import type { Claim, Engine } from "../engine.js";
import { MemoryStore, memoryEngine } from "../engines/memory/index.js";
import { channels, type EventName, emit } from "../events.js";
import { Locks } from "../locks.js";
import { flakyEngine, ManualClock } from "../testing/index.js";

const cleanUps: (() => void)[] = [];
afterEach(() => {
  for (const cleanUp of cleanUps.splice(0)) cleanUp();
});

type Told = { name: string; message: Record<string, unknown> };

function listenToAll(): Told[] {
  const told: Told[] = [];
  for (const name of Object.keys(channels) as EventName[]) {
    const listener = (message: unknown) =>
      told.push({ name, message: message as Record<string, unknown> });
    channels[name].subscribe(listener);
    cleanUps.push(() => channels[name].unsubscribe(listener));
  }
  return told;
}

function setUp() {
  const clock = new ManualClock();
  const store = new MemoryStore();
  const engine = flakyEngine(memoryEngine({ store }));
  const grantIds = new Set<string>();
  const spied: Engine = Object.assign(Object.create(engine) as Engine, {
    close: () => engine.close(),
    tryAcquire: (claim: Claim, call: never) => {
      grantIds.add(claim.grantId);
      return engine.tryAcquire(claim, call);
    },
    queue: {
      ...engine.queue!,
      enqueue: (claim: Claim, call: never) => {
        grantIds.add(claim.grantId);
        return engine.queue!.enqueue(claim, call);
      },
    },
  });
  const locks = new Locks(spied, { clock, cohort: { ms: Infinity } });
  const other = new Locks(memoryEngine({ store }), { clock });
  return { clock, engine, locks, other, grantIds };
}

test("each event is Node's channel holdfast:<name>", () => {
  for (const name of Object.keys(channels) as EventName[]) {
    assert.equal(channels[name], channel(`holdfast:${name}`));
  }
});

test("a payload is not computed without subscribers", () => {
  emit("wait", () => assert.fail("computed"));
  const told = listenToAll();
  emit("wait", () => ({ resource: "r", mode: "exclusive", label: "l" }));
  assert.equal(told.length, 1);
});

test("a lease emits in order: wait, acquired, renewed, released", async () => {
  const { clock, locks } = setUp();
  const told = listenToAll();
  const lease = await locks.acquire("a", { label: "me", ttlMs: 3_000 });
  await clock.advance(1_000);
  await lease.release();
  assert.deepEqual(
    told.map(({ name }) => name),
    ["wait", "acquired", "renewed", "released"],
  );
  const [wait, acquired, renewed, released] = told.map(({ message }) => message);
  const subject = { resource: "a", mode: "exclusive", label: "me" };
  assert.deepEqual(wait, subject);
  assert.deepEqual(acquired, { ...subject, token: 1n, waitedMs: 0 });
  assert.equal(renewed?.tookMs, 0);
  assert.ok(Number(renewed?.remainingMs) > 2_000);
  assert.deepEqual(released, { ...subject, token: 1n, heldMs: 1_000, outcome: "released" });
});

test("acquired carries the time waited", async () => {
  const { clock, locks, other } = setUp();
  const holder = await other.acquire("a");
  const told = listenToAll();
  for (const fair of ["cohort", "strict"] as const) void locks.acquire("a", { fair, label: fair });
  await clock.advance(400);
  await holder.release();
  await clock.advance(0);
  const acquired = told.find(({ name }) => name === "acquired");
  assert.equal(acquired?.message.waitedMs, 400);
});

test("every wait ends with acquired or not-granted, which gives outcome, error and time waited", async () => {
  const outcomes = ["busy", "aborted", "failed", "closed"] as const;
  for (const way of [{ fair: "cohort" }, { fair: "strict" }, { mode: "shared" }] as const) {
    for (const outcome of outcomes) {
      const { clock, locks, other, engine } = setUp();
      const told = listenToAll();
      await other.acquire("a");
      const controller = new AbortController();
      const waitMs = outcome === "busy" ? 300 : 60_000;
      if (outcome === "failed") engine.inject("enqueue", { kind: "fail" });
      const waiting = locks.acquire("a", { ...way, waitMs, signal: controller.signal });
      const failure = waiting.catch((error: unknown) => error);
      const none = locks.tryAcquire("a", way);
      await clock.advance(outcome === "failed" ? 0 : 300);
      if (outcome === "aborted") controller.abort(new Error("enough"));
      if (outcome === "closed") void locks.close();
      await clock.advance(1_000);
      const error = await failure;
      assert.equal(await none, null);
      const count = (name: string) => told.filter((event) => event.name === name).length;
      assert.deepEqual([count("wait"), count("acquired"), count("not-granted")], [3, 1, 2]);
      const ended = told.find(
        ({ name, message }) => name === "not-granted" && message.error === error,
      );
      assert.equal(ended?.message.outcome, outcome, `${JSON.stringify(way)}: ${error}`);
      assert.equal(ended?.message.resource, "a");
      const waitedMs = Number(ended?.message.waitedMs);
      const least = outcome === "failed" ? 0 : 300;
      assert.ok(waitedMs >= least && waitedMs < least + 100, `${outcome}: ${waitedMs}`);
      for (const cleanUp of cleanUps.splice(0)) cleanUp();
    }
  }
});

test("not-granted of an aborted wait carries its reason and its time", async () => {
  const { clock, locks, other } = setUp();
  await other.acquire("a");
  for (const fair of ["cohort", "strict"] as const) {
    const told = listenToAll();
    const controller = new AbortController();
    const waiting = locks.acquire("a", { fair, signal: controller.signal }).catch(() => {});
    await clock.advance(300);
    const reason = new Error("enough");
    controller.abort(reason);
    await waiting;
    const aborted = told.filter(({ name }) => name === "not-granted");
    assert.equal(aborted.length, 1);
    assert.equal(aborted[0]?.message.error, reason);
    assert.equal(aborted[0]?.message.waitedMs, 300);
    for (const cleanUp of cleanUps.splice(0)) cleanUp();
  }
});

test("not-granted of a wait that timed out has outcome busy", async () => {
  const { clock, locks, other } = setUp();
  await other.acquire("a");
  const told = listenToAll();
  const waiting = locks.acquire("a", { waitMs: 100 }).catch(() => {});
  await clock.advance(100);
  await waiting;
  assert.deepEqual(
    told.map(({ name, message }) => [name, message.outcome]),
    [
      ["wait", undefined],
      ["not-granted", "busy"],
    ],
  );
});

test("handed-over carries the former token and the next holder's time waited", async () => {
  const { clock, locks } = setUp();
  const opener = await locks.acquire("a");
  const [one, two] = [locks.acquire("a"), locks.acquire("a", { label: "two" })];
  await clock.advance(10);
  await opener.release();
  const first = await one;
  const told = listenToAll();
  await clock.advance(70);
  await first.release();
  const second = await two;
  const handed = told.find(({ name }) => name === "handed-over")!.message;
  assert.equal(handed.from, first.token);
  assert.equal(handed.token, second.token);
  assert.equal(handed.label, "two");
  assert.equal(handed.waitedMs, 80);
});

test("a failed clean-up is emitted as an event", async () => {
  const { clock, engine, locks } = setUp();
  const told = listenToAll();
  engine.inject("enqueue", { kind: "lose-reply" });
  engine.inject("release", { kind: "fail" }, 3);
  await assert.rejects(locks.acquire("a"));
  await clock.advance(1_000);
  const failed = told.find(({ name }) => name === "failed")!;
  assert.equal(failed.message.during, "clean-up");
  assert.equal(failed.message.resource, "a");
});

test("no payload contains a grantId", async () => {
  const { clock, engine, locks, other, grantIds } = setUp();
  const told = listenToAll();
  const settle = (work: Promise<unknown>) => work.catch(() => {});
  const opener = await locks.acquire("a");
  const rest = [1, 2, 3].map(() => settle(locks.acquire("a", { waitMs: 60_000 })));
  await settle(locks.tryAcquire("a"));
  await clock.advance(10);
  await opener.release();
  await clock.advance(20_000);
  const shared = await locks.acquire("s", { mode: "shared", ttlMs: 3_000 });
  await other.revoke("s", { token: shared.token });
  await clock.advance(1_000);
  const controller = new AbortController();
  await other.acquire("b");
  const aborted = settle(locks.acquire("b", { signal: controller.signal, fair: "strict" }));
  await clock.advance(10);
  controller.abort();
  const mend = engine.cut("unknown");
  await settle(locks.acquire("c"));
  await clock.advance(60_000);
  mend();
  await Promise.all([aborted, locks.close(), clock.advance(60_000), ...rest]);
  assert.ok(grantIds.size >= 5);
  const names = new Set(told.map(({ name }) => name));
  for (const name of ["lost", "in-danger", "renewal-failed", "failed", "not-granted", "renewed"]) {
    assert.ok(names.has(name), `${name} did not happen: the test is too tame`);
  }
  const shown = inspect(told, { depth: 12, showHidden: true, maxArrayLength: null });
  for (const grantId of grantIds) assert.ok(!shown.includes(grantId));
});

test("a subscriber that throws breaks no acquire", async () => {
  const { locks } = setUp();
  const thrown: unknown[] = [];
  const listener = () => {
    throw new Error("the subscriber's own mistake");
  };
  const onUncaught = (error: unknown) => thrown.push(error);
  const before = process.listeners("uncaughtException");
  process.removeAllListeners("uncaughtException");
  process.on("uncaughtException", onUncaught);
  channels.acquired.subscribe(listener);
  const lease = await locks.acquire("a");
  channels.acquired.unsubscribe(listener);
  await new Promise((go) => setImmediate(go));
  process.off("uncaughtException", onUncaught);
  for (const each of before) process.on("uncaughtException", each);
  assert.ok(lease.held);
  assert.equal(thrown.length, 1);
});

test("a subscriber of wait that aborts this wait ends it", async () => {
  const { clock, locks, other } = setUp();
  await other.acquire("a");
  for (const fair of ["cohort", "strict"] as const) {
    const controller = new AbortController();
    const listener = () => controller.abort(new Error("enough"));
    channels.wait.subscribe(listener);
    const waiting = locks
      .acquire("a", { fair, waitMs: 5_000, signal: controller.signal })
      .catch((error: Error) => error.message);
    channels.wait.unsubscribe(listener);
    await clock.advance(10_000);
    assert.equal(await waiting, "enough", fair);
  }
});
