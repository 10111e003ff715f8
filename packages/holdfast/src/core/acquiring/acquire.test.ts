import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import type { Call, Claim, Engine } from "../../engine.js";
import { MemoryStore, memoryEngine } from "../../engines/memory/index.js";
import { AcquireTimeoutError, ContractError, EngineError } from "../../errors.js";
import { Locks } from "../../locks.js";
import { flakyEngine, ManualClock } from "../../testing/index.js";
import { systemClock, type Timer } from "../runtime/clock.js";
import { gate, outcomeOf, setUp } from "../test/set-up.fixture.js";

// "strict" bypasses the cohort, so that these tests see one claim on its own.
const ALONE = { fair: "strict" } as const;

test("a claim sends one request when the resource is free", async () => {
  const { engine, locks } = setUp();
  const lease = await locks.acquire("a", ALONE);
  assert.equal(lease.token, 1n);
  assert.equal(engine.calls("enqueue"), 1);
  assert.equal(engine.calls("tryAcquire"), 0);
});

test("a waiting claim is granted by a push, without another call", async () => {
  const { engine, locks, other } = setUp();
  const first = await other.acquire("a");
  const waiting = locks.acquire("a", ALONE);
  await first.release();
  const second = await waiting;
  assert.ok(second.held);
  assert.ok(second.token > first.token);
  assert.equal(engine.calls("heartbeat"), 0);
});

test("a claim whose push is lost is granted by its next heartbeat", async () => {
  const { clock, engine, locks, other } = setUp();
  const first = await other.acquire("a");
  engine.pushes("drop");
  const waiting = locks.acquire("a", ALONE);
  await clock.advance(100);
  await first.release();
  await clock.advance(1_000);
  const second = await waiting;
  assert.ok(second.held);
  assert.equal(engine.calls("heartbeat"), 1);
});

test("a claim that times out leaves the queue, and its error names the holder and the time waited", async () => {
  const { clock, locks, other, queued } = setUp();
  const holder = await other.acquire("a", { label: "the holder" });
  const waiting = outcomeOf(locks.acquire("a", { ...ALONE, waitMs: 700 }));
  await clock.advance(699);
  assert.equal(queued("a"), 1);
  await clock.advance(1);
  const error = await waiting;
  assert.ok(error instanceof AcquireTimeoutError);
  assert.equal(error.waitedMs, 700);
  assert.deepEqual(
    error.holders.map((h) => [h.label, h.token]),
    [["the holder", holder.token]],
  );
  assert.match(error.message, /the holder/);
  assert.equal(queued("a"), 0);
});

test("a claim that is granted just before it times out keeps the grant", async () => {
  // The push is lost, and waitMs ends before the next heartbeat: withdraw finds the grant.
  const { clock, engine, locks, other, held } = setUp();
  const first = await other.acquire("a");
  engine.pushes("drop");
  const waiting = locks.acquire("a", { ...ALONE, waitMs: 500 });
  await clock.advance(100);
  await first.release();
  await clock.advance(400);
  const lease = await waiting;
  assert.ok(lease.held);
  assert.equal(engine.calls("withdraw"), 1);
  await lease.release();
  assert.equal(held("a"), 0);
});

class EarlyClock extends ManualClock {
  // Node counts timers in whole milliseconds of the loop's time, so a timer may fire up to a
  // millisecond early.
  override timer(delayMs: number, callback: () => void, keepAlive: boolean): Timer {
    return super.timer(delayMs > 100 ? delayMs - 0.9 : delayMs, callback, keepAlive);
  }
}

test("a claim whose wait timer fires a moment early does not claim again with a released grantId", async () => {
  const { clock, engine, locks, other } = setUp({}, new EarlyClock());
  await other.acquire("a");
  const waiting = outcomeOf(locks.acquire("a", { ...ALONE, waitMs: 500 }));
  await clock.advance(510);
  assert.ok((await waiting) instanceof AcquireTimeoutError);
  assert.equal(engine.calls("enqueue"), 1, "the claim joined the queue again after it had left");
});

test("a grantId that was released is never used for another claim", async () => {
  // The clean-up release is on its way while the claim tries again. With the same grantId it would
  // end the new grant.
  const clock = new EarlyClock();
  const store = new MemoryStore();
  const seen: string[] = [];
  const inner = memoryEngine({ store });
  const engine = flakyEngine(inner);
  const { queue } = engine;
  const spy: Engine = Object.assign(Object.create(engine) as Engine, {
    queue: {
      ...queue!,
      enqueue: (claim: { grantId: string }, call: never) => {
        seen.push(claim.grantId);
        return queue!.enqueue(claim as never, call);
      },
    },
    release: (refs: readonly { grantId: string }[], call: never) => {
      for (const { grantId } of refs) seen.push(`released ${grantId}`);
      return engine.release(refs as never, call);
    },
  });
  const locks = new Locks(spy, { clock });
  const other = new Locks(memoryEngine({ store }), { clock });
  await other.acquire("a");
  const waiting = outcomeOf(locks.acquire("a", { ...ALONE, waitMs: 500 }));
  await clock.advance(510);
  await waiting;
  for (const [i, entry] of seen.entries()) {
    assert.ok(!seen.slice(0, i).includes(`released ${entry}`), `claimed again: ${seen.join(", ")}`);
  }
});

test("a claim whose first request was lost leaves a tombstone although the next one was answered busy", async () => {
  const engine = flakyEngine(memoryEngine({ store: new MemoryStore() }));
  const lost: Claim[] = [];
  const lossy: Engine = Object.assign(Object.create(engine) as Engine, {
    queue: undefined,
    tryAcquire: (claim: Claim, call: Call) => {
      if (lost.length > 0) return engine.tryAcquire(claim, call);
      lost.push(claim);
      const unknown = { effect: "unknown", retryable: true } as const;
      return Promise.reject(new EngineError("the answer was lost", unknown));
    },
  });
  const held = await new Locks(engine).acquire("a");
  const waiting = new Locks(lossy).acquire("a", { ...ALONE, waitMs: 100, retry: [1, 200] });
  await assert.rejects(waiting, AcquireTimeoutError);
  await held.release();
  const call = { startedAt: systemClock.now(), timeoutMs: 1_000, order: 1 };
  const late = await engine.tryAcquire(lost[0]!, call);
  assert.equal(late.kind, "gone");
});

test("a tryAcquire without an answer fails after callTimeoutMs, and is not reported as busy", async () => {
  const { clock, engine, locks, held } = setUp();
  engine.inject("tryAcquire", { kind: "hang", carriedOut: true });
  const trying = outcomeOf(locks.tryAcquire("a", { ...ALONE, callTimeoutMs: 300 }));
  await clock.advance(300);
  const error = await trying;
  assert.ok(error instanceof EngineError);
  assert.equal(error.effect, "unknown");
  await clock.advance(0);
  assert.equal(held("a"), 0);
});

for (const fair of ["strict", "cohort"] as const) {
  test(`an acquire without an answer within waitMs is not reported as busy (${fair})`, async () => {
    const { clock, engine, locks } = setUp();
    for (const verb of ["enqueue", "withdraw", "release"] as const) {
      engine.inject(verb, { kind: "hang", carriedOut: false }, 9);
    }
    const waiting = outcomeOf(locks.acquire("a", { fair, waitMs: 400, callTimeoutMs: 1_000 }));
    await clock.advance(10_000);
    const error = await waiting;
    assert.ok(error instanceof EngineError, `got ${String(error)}`);
  });
}

const WAYS = {
  strict: { fair: "strict" },
  cohort: { fair: "cohort" },
  shared: { mode: "shared" },
  "not renewed": { renew: false },
} as const;

for (const [way, options] of Object.entries(WAYS)) {
  for (const hasQueue of [true, false]) {
    const where = `${way}, ${hasQueue ? "in a queue" : "without a queue"}`;
    test(`a wait ends after waitMs although its claim is never answered (${where})`, async () => {
      const { clock, engine, held } = setUp();
      const queueless: Engine = Object.assign(Object.create(engine) as Engine, {
        ...{ queue: undefined, close: () => engine.close() },
      });
      const locks = new Locks(hasQueue ? engine : queueless, { clock });
      for (const verb of [hasQueue ? "enqueue" : "tryAcquire", "withdraw"] as const) {
        engine.inject(verb, { kind: "hang", carriedOut: verb !== "withdraw" });
      }
      const ends: unknown[] = [];
      const wait = { ...options, waitMs: 400, callTimeoutMs: 5_000 };
      void outcomeOf(locks.acquire("a", wait)).then((end) => ends.push(end));
      await clock.advance(399);
      assert.equal(ends.length, 0);
      assert.equal(held("a"), 1, "the claim was carried out, and nobody knows it");
      await clock.advance(51);
      const [end] = ends;
      assert.ok(end instanceof EngineError, `got ${String(end)}`);
      assert.equal(end.effect, "unknown");
      assert.match(end.message, /did not answer within 4[05]0 ms/);
      await clock.advance(10);
      assert.equal(held("a"), 0, "the claim in doubt was not released");
      await locks.close();
      await clock.advance(10_000);
      assert.equal(clock.timers, 0);
    });
  }

  test(`a wait ends after waitMs although the backend stops answering (${way})`, async () => {
    const { clock, engine, locks, other, queued } = setUp();
    await other.acquire("a");
    const ends: unknown[] = [];
    void outcomeOf(locks.acquire("a", { ...options, waitMs: 400 })).then((end) => ends.push(end));
    await clock.advance(100);
    assert.equal(queued("a"), 1);
    for (const verb of ["heartbeat", "withdraw", "release"] as const) {
      engine.inject(verb, { kind: "hang", carriedOut: false });
    }
    await clock.advance(350);
    // The place was confirmed a moment ago, so the holder is known.
    assert.ok(ends[0] instanceof AcquireTimeoutError, `got ${String(ends[0])}`);
    await clock.advance(10_000);
    assert.equal(queued("a"), 0, "the clean-up was not repeated");
  });

  test(`a wait whose requests fail ends after waitMs, and says why (${way})`, async () => {
    const { clock, engine, locks } = setUp();
    const refused = new EngineError("refused", { effect: "none", retryable: true });
    engine.inject("enqueue", { kind: "fail", error: refused }, 99);
    const waiting = outcomeOf(locks.acquire("a", { ...options, waitMs: 400, retry: [1_000] }));
    await clock.advance(450);
    assert.equal(await Promise.race([waiting, "still waiting"]), refused);
  });
}

for (const fair of ["strict", "cohort"] as const) {
  test(`a backend that stops answering while a claim is in the queue is not reported as busy (${fair})`, async () => {
    const { clock, engine, locks, other, queued } = setUp();
    await other.acquire("a");
    const waiting = outcomeOf(locks.acquire("a", { fair, waitMs: 9_000 }));
    await clock.advance(1);
    assert.equal(queued("a"), 1);
    const mend = engine.cut("unknown");
    await clock.advance(9_000);
    mend();
    await clock.advance(5_000);
    const error = await waiting;
    assert.ok(error instanceof EngineError, `got ${String(error)}`);
    assert.equal(queued("a"), 0, "the waiter is still in the queue");
  });
}

for (const fair of ["strict", "cohort"] as const) {
  test(`an engine that always answers gone causes no busy loop: waitMs ends the claim (${fair})`, async () => {
    const { clock, engine } = setUp();
    let asked = 0;
    const gone: Engine = Object.assign(Object.create(engine) as Engine, {
      queue: {
        ...engine.queue!,
        enqueue: async () => {
          // Too many calls without a pause: stop the loop, because nothing else can.
          if (++asked > 10_000) throw new EngineError("spun", { effect: "none", retryable: false });
          return { kind: "gone", why: "unknown" };
        },
      },
    });
    const spun = new Locks(gone, { clock });
    let ended = false;
    void outcomeOf(spun.acquire("a", { fair, waitMs: 500 })).then(() => {
      ended = true;
    });
    await clock.advance(3_000);
    assert.ok(ended, "waitMs is half a second, and it still waits after three");
    assert.ok(asked < 100, `asked ${asked} times`);
  });
}

test("an engine that repeats a token is refused with ContractError, and its grant is released", async () => {
  const { clock, engine, held } = setUp();
  const stuck: Engine = Object.assign(Object.create(engine) as Engine, {
    queue: {
      ...engine.queue!,
      enqueue: async (claim: never, call: never) => ({
        ...(await engine.queue!.enqueue(claim, call)),
        token: 7n,
      }),
    },
  });
  const repeating = new Locks(stuck, { clock });
  await (await repeating.acquire("a", ALONE)).release();
  const error = await outcomeOf(repeating.acquire("a", ALONE));
  assert.ok(error instanceof ContractError);
  assert.match(error.message, /7/);
  await clock.advance(0);
  assert.equal(held("a"), 0);
});

test("an aborted wait leaves no waiter, no timer and no listener", async () => {
  const { clock, locks, other, queued } = setUp();
  await other.acquire("a");
  await clock.advance(0);
  const timersBefore = clock.timers;
  for (const fair of ["strict", "cohort"] as const) {
    const controller = new AbortController();
    const waiting = outcomeOf(locks.acquire("a", { fair, signal: controller.signal }));
    await clock.advance(10);
    assert.equal(queued("a"), 1);
    const reason = new Error("enough");
    controller.abort(reason);
    assert.equal(await waiting, reason, "the reason is not the signal's own");
    await clock.advance(0);
    assert.equal(queued("a"), 0);
    assert.equal(getEventListeners(controller.signal, "abort").length, 0);
    assert.equal(clock.timers, timersBefore);
  }
});

test("an abort while the enqueue hangs ends the acquire at once and cleans up", async () => {
  const { clock, engine, locks, held } = setUp();
  for (const fair of ["strict", "cohort"] as const) {
    const { opened, open } = gate();
    const controller = new AbortController();
    engine.inject("enqueue", { kind: "hold-reply", until: opened });
    const waiting = outcomeOf(locks.acquire("a", { fair, signal: controller.signal }));
    await clock.advance(10);
    assert.equal(held("a"), 1);
    controller.abort(new Error("enough"));
    assert.match(String(await waiting), /enough/);
    open();
    await clock.advance(0);
    assert.equal(held("a"), 0);
  }
});

test("an acquire with an aborted signal is refused without a call", async () => {
  const { engine, locks } = setUp();
  const reason = new Error("never");
  const error = await outcomeOf(locks.acquire("a", { signal: AbortSignal.abort(reason) }));
  assert.equal(error, reason);
  assert.equal(engine.calls("enqueue") + engine.calls("tryAcquire"), 0);
});

// A queue between us and the backend may keep a request for longer than a tombstone lasts.
for (const verb of ["tryAcquire", "enqueue"] as const) {
  test(`a grant that ${verb} reports after the acquire has ended is released`, async () => {
    const { clock, engine, locks, store } = setUp();
    const { opened, open } = gate();
    engine.inject(verb, { kind: "hold-request", until: opened });
    const waitMs = verb === "tryAcquire" ? 0 : 300;
    const acquiring = outcomeOf(locks.acquire("a", { ...ALONE, waitMs, callTimeoutMs: 300 }));
    await clock.advance(400);
    assert.ok((await acquiring) instanceof Error);
    store.ageTombstones(10 * 60_000);
    const released = engine.calls("release");
    open();
    await clock.advance(1);
    assert.equal(engine.calls("release"), released + 1);
    assert.deepEqual((await locks.inspect("a")).holders, []);
  });
}

test("a late answer to an earlier try does not release the grant of a later one", async () => {
  const { clock, engine, locks } = setUp();
  const { opened, open } = gate();
  engine.inject("enqueue", { kind: "hold-request", until: opened });
  const acquiring = locks.acquire("a", { ...ALONE, callTimeoutMs: 300, retry: [10] });
  await clock.advance(400);
  const lease = await acquiring;
  open();
  await clock.advance(1);
  assert.equal(engine.calls("release"), 0);
  assert.ok(lease.held);
  assert.equal((await locks.inspect("a")).holders.length, 1);
});

test("a first try that is carried out after its lease was released leaves no grant", async () => {
  const { clock, engine, locks, store, held } = setUp();
  const { opened, open } = gate();
  engine.inject("enqueue", { kind: "hold-request", until: opened });
  const acquiring = locks.acquire("a", { ...ALONE, callTimeoutMs: 300, retry: [10] });
  await clock.advance(400);
  await (await acquiring).release();
  store.ageTombstones(10 * 60_000);
  open();
  await clock.advance(1);
  assert.equal(engine.calls("release"), 2);
  assert.equal(held("a"), 0);
});

for (const [kind, terms] of [
  ["alone", ALONE],
  ["in a cohort", {}],
  ["shared", { mode: "shared" }],
] as const) {
  test(`a claim that times out during a request does not report effect none (${kind})`, async () => {
    const { clock, engine, locks, other } = setUp();
    const error = new EngineError("out of memory", { effect: "none", retryable: true });
    engine.inject("enqueue", { kind: "fail", error });
    engine.inject("enqueue", { kind: "hang", carriedOut: true });
    // A strict claim withdraws at its timeout; that call gets no answer either.
    engine.inject("withdraw", { kind: "hang", carriedOut: false });
    const acquiring = outcomeOf(
      locks.acquire("a", { ...terms, waitMs: 900, ttlMs: 20_000, retry: [400, 5_000] }),
    );
    await clock.advance(1_000);
    const told = (await acquiring) as EngineError;
    assert.equal(told.message, error.message);
    assert.equal(told.effect, "unknown", "the second request was carried out");
    await clock.advance(5_000);
    assert.ok(await other.tryAcquire("a"), "it was not released");
  });
}
