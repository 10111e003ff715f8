import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { inspect } from "node:util";
import type { Claim, Engine } from "../../engine.js";
import { MemoryStore, memoryEngine } from "../../engines/memory/index.js";
import { EngineError, LeaseLostError, UsageError } from "../../errors.js";
import { channels } from "../../events.js";
import { parseSequencer } from "../../fencing/sequencer.js";
import { Locks } from "../../locks.js";
import { flakyEngine, ManualClock } from "../../testing/index.js";

const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0)) await cleanUp();
});

function setUp() {
  const clock = new ManualClock();
  const store = new MemoryStore();
  const engine = flakyEngine(memoryEngine({ store }));
  const locks = new Locks(engine, { clock, drift: 0 });
  const other = new Locks(memoryEngine({ store }), { clock });
  return { clock, store, engine, locks, other };
}

function blockEventLoop(ms: number): void {
  const until = process.hrtime.bigint() + BigInt(ms) * 1_000_000n;
  while (process.hrtime.bigint() < until);
}

test("a lease shows its resource, mode, label and token", async () => {
  const { locks } = setUp();
  const lease = await locks.acquire("in voice/42", { label: "me", ttlMs: 10_000 });
  assert.equal(lease.resource, "in voice/42");
  assert.equal(lease.mode, "exclusive");
  assert.equal(lease.label, "me");
  assert.equal(lease.token, 1n);
  assert.equal(lease.sequencer, "exclusive:1:in%20voice%2F42");
  assert.deepEqual(parseSequencer(lease.sequencer), {
    mode: "exclusive",
    token: 1n,
    resource: "in voice/42",
  });
  assert.ok(lease.held);
  lease.assertHeld();
});

test("remainingMs counts down to the grace before validity ends", async () => {
  const { clock, locks } = setUp();
  const lease = await locks.acquire("a", { ttlMs: 10_000, graceMs: 400, renew: false });
  assert.equal(lease.remainingMs(), 9_600);
  clock.pause(600);
  assert.equal(lease.remainingMs(), 9_000);
  clock.pause(8_999);
  assert.ok(lease.held);
  clock.pause(1);
  assert.equal(lease.held, false);
  assert.equal(lease.remainingMs(), 0);
});

test("LeaseLostError says for how long nobody else can hold the resource", async () => {
  const { clock, locks } = setUp();
  const lease = await locks.acquire("a", { ttlMs: 10_000, graceMs: 400, renew: false });
  await clock.advance(9_600);
  assert.equal(lease.signal.reason.remainingMs, 400);
  const late = await locks.acquire("b", { ttlMs: 10_000, graceMs: 400, renew: false });
  clock.pause(20_000);
  assert.equal(late.signal.reason.remainingMs, 0);
});

test("drift shortens validity", async () => {
  const clock = new ManualClock();
  const locks = new Locks(memoryEngine(), { clock, drift: 0.1 });
  const lease = await locks.acquire("a", { ttlMs: 10_000, graceMs: 0, renew: false });
  assert.equal(lease.remainingMs(), 9_000);
});

test("validity counts from the send, not from the receipt", async () => {
  const { clock, engine, locks } = setUp();
  let open = () => {};
  const until = new Promise<void>((go) => {
    open = go;
  });
  engine.inject("enqueue", { kind: "hold-reply", until });
  const acquiring = locks.acquire("a", { ttlMs: 10_000, graceMs: 0, renew: false });
  await clock.advance(4_000);
  open();
  const lease = await acquiring;
  assert.equal(lease.remainingMs(), 6_000);
});

test("a lease is not held at the first statement after a blocked event loop", async () => {
  // Real time: no timer has had a chance to run.
  const locks = new Locks(memoryEngine());
  cleanUps.push(() => locks.close());
  const lease = await locks.acquire("a", { ttlMs: 60 });
  const { signal } = lease;
  assert.ok(lease.held);
  blockEventLoop(70);
  assert.equal(lease.held, false);
  assert.ok(signal.aborted);
  assert.ok(signal.reason instanceof LeaseLostError);
  assert.throws(() => lease.assertHeld(), LeaseLostError);
  assert.equal(await lease.release(), "gone");
});

test("the signal is aborted on its first access after a blocked event loop", async () => {
  const locks = new Locks(memoryEngine());
  cleanUps.push(() => locks.close());
  const lease = await locks.acquire("a", { ttlMs: 60 });
  blockEventLoop(70);
  assert.ok(lease.signal.aborted);
});

test("a listener on the signal is called by a timer when the lease ends", async () => {
  const { clock, locks } = setUp();
  const lease = await locks.acquire("a", { ttlMs: 3_000, renew: false });
  let calls = 0;
  lease.signal.addEventListener("abort", () => calls++);
  await clock.advance(3_000);
  assert.equal(calls, 1);
  assert.equal(lease.signal.reason, lease.signal.reason);
});

test("neither a release nor a later loss of the grant aborts the signal", async () => {
  const { clock, locks } = setUp();
  const lease = await locks.acquire("a", { ttlMs: 3_000 });
  const { signal } = lease;
  await lease.release();
  clock.pause(10_000);
  await clock.advance(0);
  assert.equal(signal.aborted, false);
  assert.equal(lease.signal.aborted, false);
});

test("release() called several times releases once", async () => {
  const { engine, locks } = setUp();
  const lease = await locks.acquire("a");
  const [first, second] = [lease.release(), lease.release()];
  assert.equal(lease.held, false, "from the call on, not from the answer on");
  assert.equal(await first, "released");
  assert.equal(await second, "released");
  assert.equal(await lease.release(), "released");
  assert.equal(engine.calls("release"), 1);
  assert.throws(() => lease.assertHeld(), UsageError);
});

test("a release whose reply is lost is repeated, and returns the backend's answer", async () => {
  const { clock, engine, locks, store } = setUp();
  const lease = await locks.acquire("a");
  engine.inject("release", { kind: "lose-reply" });
  const releasing = lease.release();
  await clock.advance(0);
  assert.ok(["released", "gone"].includes(await releasing));
  assert.equal(engine.calls("release"), 2);
  assert.equal(store.resources.size, 0);
});

test("a release that cannot be sent rejects after three tries, and leaves no timer", async () => {
  const { clock, engine, locks } = setUp();
  const lease = await locks.acquire("a");
  const mend = engine.cut();
  const releasing = lease.release().catch((error: Error) => error);
  await clock.advance(1_000);
  assert.ok((await releasing) instanceof EngineError);
  assert.equal(engine.calls("release"), 3);
  assert.equal(clock.timers, 0);
  mend();
});

test("a release of a lost lease returns gone, leaves a successor alone, and lets the next one in early", async () => {
  const { clock, engine, locks, other } = setUp();
  const lease = await locks.acquire("a", { ttlMs: 10_000, graceMs: 1_000, maxHoldMs: 1_000 });
  await clock.advance(1_000);
  assert.equal(await other.tryAcquire("a"), null, "the backend still keeps the grant");
  assert.equal(await lease.release(), "gone");
  await clock.advance(0);
  const successor = await other.tryAcquire("a");
  assert.ok(successor?.held);
  assert.equal(await lease.release(), "gone");
  await clock.advance(0);
  assert.ok(await other.check(successor.sequencer));
  assert.equal(engine.calls("release"), 1);
});

test("a release of a lost lease keeps its lock-delay", async () => {
  const { clock, engine, locks, other } = setUp();
  const lease = await locks.acquire("a", { ttlMs: 3_000, renew: false, lockDelayMs: 5_000 });
  await clock.advance(2_900);
  assert.equal(await lease.release(), "gone");
  await clock.advance(3_000);
  assert.equal(await other.tryAcquire("a"), null);
  await clock.advance(3_000);
  assert.ok(await other.tryAcquire("a"));
  assert.equal(engine.calls("release"), 0);
});

test("a release inside the listener of the loss is reported once", async () => {
  const { clock, locks } = setUp();
  const lease = await locks.acquire("a", { ttlMs: 3_000, renew: false });
  const released: unknown[] = [];
  const listener = (message: unknown) => released.push(message);
  channels.released.subscribe(listener);
  cleanUps.push(() => channels.released.unsubscribe(listener));
  lease.signal.addEventListener("abort", () => void lease.release());
  clock.pause(5_000);
  // Nobody has noticed the loss yet: this call does, and the listener runs inside it.
  assert.equal(await lease.release(), "gone");
  await clock.advance(0);
  assert.equal(released.length, 1);
});

test("dispose releases, and never throws", async () => {
  const { clock, engine, locks, store } = setUp();
  {
    await using lease = await locks.acquire("a");
    assert.ok(lease.held);
  }
  assert.equal(store.resources.size, 0);
  const failures: { during: string }[] = [];
  const listener = (message: unknown) => failures.push(message as { during: string });
  channels.failed.subscribe(listener);
  cleanUps.push(() => channels.failed.unsubscribe(listener));
  const lease = await locks.acquire("a");
  engine.cut();
  const disposing = lease[Symbol.asyncDispose]();
  await clock.advance(1_000);
  assert.equal(await disposing, undefined);
  assert.deepEqual(
    failures.map(({ during }) => during),
    ["dispose"],
  );
});

test("neither inspect nor JSON of a lease shows its grantId", async () => {
  const ids: string[] = [];
  const engine = memoryEngine();
  const spied: Engine = Object.assign(Object.create(engine) as Engine, {
    close: () => engine.close(),
    queue: {
      ...engine.queue!,
      enqueue: (claim: Claim, call: never) => {
        ids.push(claim.grantId);
        return engine.queue!.enqueue(claim, call);
      },
    },
  });
  const locks = new Locks(spied);
  cleanUps.push(() => locks.close());
  const lease = await locks.acquire("a");
  assert.equal(ids.length, 1);
  const shown = inspect(lease, { depth: 9, showHidden: true }) + JSON.stringify(lease);
  assert.ok(!shown.includes(ids[0]!), shown);
  assert.match(JSON.stringify(lease), /"token":"1"/);
});
