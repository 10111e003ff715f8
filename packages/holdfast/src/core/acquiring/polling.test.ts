import assert from "node:assert/strict";
import { test } from "node:test";
import type { Engine } from "../../engine.js";
import { MemoryStore, memoryEngine } from "../../engines/memory/index.js";
import { AcquireTimeoutError } from "../../errors.js";
import { Locks } from "../../locks.js";
import { flakyEngine, ManualClock } from "../../testing/index.js";
import { fixed } from "./retry.js";

/** An engine without a queue; with watch, it still reports changes. */
function withoutQueue(inner: Engine, watch: boolean): Engine {
  const { name, traits } = inner;
  return {
    name,
    traits,
    tryAcquire: (claim, call) => inner.tryAcquire(claim, call),
    renew: (refs, call) => inner.renew(refs, call),
    release: (refs, call) => inner.release(refs, call),
    check: (sequence, call) => inner.check(sequence, call),
    revoke: (ref, call) => inner.revoke(ref, call),
    inspect: (resource, call) => inner.inspect(resource, call),
    list: (filter, call) => inner.list(filter, call),
    close: () => inner.close(),
    ...(watch ? { watch: inner.watch! } : {}),
  };
}

function setUp(watch = false) {
  const clock = new ManualClock();
  const store = new MemoryStore();
  const engine = flakyEngine(memoryEngine({ store }));
  const locks = new Locks(withoutQueue(engine, watch), { clock });
  const other = new Locks(memoryEngine({ store }), { clock });
  const changed = (name: string) => {
    for (const listener of store.changeListeners) listener(name);
  };
  return { clock, store, engine, locks, other, changed };
}

function outcomeOf<T>(work: Promise<T>): Promise<T | Error> {
  return work.catch((error: Error) => error);
}

for (const fair of ["cohort", "strict"] as const) {
  test(`a claim polls when the engine keeps no queue (${fair})`, async () => {
    const { clock, locks, other } = setUp();
    const holder = await other.acquire("a");
    const waiting = locks.acquire("a", { fair });
    await clock.advance(5_000);
    await holder.release();
    await clock.advance(1_000);
    assert.ok((await waiting).held);
  });

  test(`a claim without a queue ends after waitMs and leaves no timer (${fair})`, async () => {
    const { clock, locks, other } = setUp();
    await other.acquire("a", { renew: false, ttlMs: 3_600_000, label: "the holder" });
    await clock.advance(0);
    const before = clock.timers;
    const waiting = outcomeOf(locks.acquire("a", { fair, waitMs: 3_000 }));
    await clock.advance(3_000);
    const error = await waiting;
    assert.ok(error instanceof AcquireTimeoutError);
    assert.equal(error.holders[0]?.label, "the holder");
    assert.equal(clock.timers, before);
  });

  test(`a retry strategy sets the delays between polls when there is no queue (${fair})`, async () => {
    const { clock, engine, locks, other } = setUp();
    await other.acquire("a");
    const waiting = outcomeOf(
      locks.acquire("a", { fair, waitMs: 20_000, retry: fixed({ delayMs: 6_000 }) }),
    );
    await clock.advance(15_000);
    assert.equal(engine.calls("tryAcquire"), 3);
    await clock.advance(5_000);
    assert.ok((await waiting) instanceof AcquireTimeoutError);
  });

  test(`a reported change causes a poll at once (${fair})`, async () => {
    const { clock, locks, other, changed } = setUp(true);
    const holder = await other.acquire("a");
    const waiting = locks.acquire("a", { fair });
    // By now a poll is due only every second or so.
    await clock.advance(10_000);
    await holder.release();
    changed("a");
    await clock.advance(0);
    assert.ok((await waiting).held);
  });

  test(`a change that overtakes the answer to a poll is not missed (${fair})`, async () => {
    const { clock, engine, locks, other, changed } = setUp(true);
    const holder = await other.acquire("a");
    let answer = () => {};
    const until = new Promise<void>((resolve) => {
      answer = resolve;
    });
    engine.inject("tryAcquire", { kind: "hold-reply", until });
    const waiting = locks.acquire("a", { fair });
    await clock.advance(0);
    await holder.release();
    changed("a");
    answer();
    await clock.advance(0);
    await clock.advance(0);
    assert.equal(engine.calls("tryAcquire"), 2, "it did not poll again at once");
    assert.ok((await waiting).held);
  });

  test(`an abort between two polls leaves no timer and no listener (${fair})`, async () => {
    const { clock, store, locks, other } = setUp(true);
    await other.acquire("a", { renew: false, ttlMs: 3_600_000 });
    await clock.advance(0);
    const [timers, listeners] = [clock.timers, store.changeListeners.size];
    const controller = new AbortController();
    const waiting = outcomeOf(locks.acquire("a", { fair, signal: controller.signal }));
    await clock.advance(1_000);
    const reason = new Error("enough");
    controller.abort(reason);
    assert.equal(await waiting, reason);
    await clock.advance(0);
    assert.equal(clock.timers, timers);
    assert.equal(store.changeListeners.size, listeners);
  });

  test(`close between two polls ends the wait (${fair})`, async () => {
    const { clock, locks, other } = setUp();
    await other.acquire("a");
    const waiting = outcomeOf(locks.acquire("a", { fair }));
    await clock.advance(1_000);
    await locks.close();
    assert.match(String(await waiting), /closed/);
  });
}

test("polls are spread out: at most twenty-five in ten seconds", async () => {
  const { clock, engine, locks, other } = setUp();
  await other.acquire("a");
  const waiting = outcomeOf(locks.acquire("a", { waitMs: 10_000 }));
  await clock.advance(10_000);
  await waiting;
  assert.ok(engine.calls("tryAcquire") <= 25, `${engine.calls("tryAcquire")} looks`);
});

test("a change of another resource causes no poll", async () => {
  const { clock, engine, locks, other, changed } = setUp(true);
  await other.acquire("a");
  const waiting = outcomeOf(locks.acquire("a", { waitMs: 20_000 }));
  await clock.advance(10_000);
  const before = engine.calls("tryAcquire");
  changed("b");
  await clock.advance(0);
  assert.equal(engine.calls("tryAcquire"), before);
  await clock.advance(10_000);
  await waiting;
});

test("a lost answer leaves no waiter and no grant, whether it was busy or granted", async () => {
  const { clock, engine, locks, store } = setUp();
  engine.inject("tryAcquire", { kind: "lose-reply" });
  assert.ok((await outcomeOf(locks.acquire("a"))) instanceof Error);
  await clock.advance(0);
  assert.equal(store.resources.size, 0);
});
