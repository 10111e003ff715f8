import assert from "node:assert/strict";
import { test } from "node:test";
import { MemoryStore, memoryEngine } from "../../engines/memory/index.js";
import { ClosedError, LeaseLostError, UsageError } from "../../errors.js";
import { Locks } from "../../locks.js";
import type { AcquireOptions } from "../../options.js";
import type { Lease } from "../holding/lease.js";
import { outcomeOf, setUp } from "./set-up.fixture.js";

async function microtasks(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await Promise.resolve();
}

const KINDS: Record<string, AcquireOptions> = {
  cohort: {},
  strict: { fair: "strict" },
  shared: { mode: "shared" },
  "no wait": { waitMs: 0 },
};

test("close releases what is held, tells its holders, and does not affect other connections", async () => {
  const { locks, other, store } = setUp();
  const mine = await locks.acquire("a");
  const shared = await locks.acquire("s", { mode: "shared" });
  const theirs = await other.acquire("b");
  await locks.close();
  assert.equal(mine.held, false);
  assert.equal(shared.held, false);
  for (const { signal } of [mine, shared]) {
    assert.ok(signal.reason instanceof LeaseLostError);
    assert.equal(signal.reason.reason, "closed");
  }
  assert.equal(await mine.release(), "gone");
  assert.ok(theirs.held && !theirs.signal.aborted);
  assert.deepEqual([...store.resources.keys()], ["b"]);
});

test("close called twice closes once", async () => {
  const { locks } = setUp();
  assert.equal(locks.close(), locks.close());
  await locks[Symbol.asyncDispose]();
});

test("every verb refuses with UsageError after close", async () => {
  const { locks } = setUp();
  await locks.close();
  const list = async () => {
    for await (const _ of locks.list());
  };
  const verbs = [
    () => locks.acquire("a"),
    () => locks.tryAcquire("a"),
    () => locks.run("a", () => 1),
    () => locks.check("exclusive:1:a"),
    () => locks.inspect("a"),
    () => locks.revoke("a", { token: 1n }),
    list,
  ];
  for (const verb of verbs) await assert.rejects(verb(), UsageError);
});

for (const kind of ["cohort", "strict", "shared"] as const) {
  test(`close ends a wait, and the waiter has left the queue before the engine closes (${kind})`, async () => {
    const { clock, locks, other, store } = setUp();
    const holder = await other.acquire("a");
    const waiting = outcomeOf(locks.acquire("a", KINDS[kind]));
    await clock.advance(10);
    await locks.close();
    const error = await waiting;
    assert.ok(error instanceof ClosedError, String(error));
    assert.ok(!(error instanceof UsageError), "the waiting caller made no mistake");
    assert.equal(error.code, "CLOSED");
    assert.equal(
      store.resources.get("a")?.queue.length,
      0,
      "a waiter of a closed client is in the queue",
    );
    await holder.release();
    assert.ok(await other.tryAcquire("a"), "somebody is in the way");
  });
}

test("close waits for the clean-up of a claim that was just aborted", async () => {
  const { clock, locks, other, store } = setUp();
  await other.acquire("a");
  const controller = new AbortController();
  const waiting = outcomeOf(locks.acquire("a", { signal: controller.signal }));
  await clock.advance(10);
  controller.abort();
  await locks.close();
  await waiting;
  assert.equal(store.resources.get("a")?.queue.length, 0);
});

test("close waits for a release that is under way, its repeats included", async () => {
  const { clock, engine, locks, store } = setUp();
  const lease = await locks.acquire("a");
  engine.inject("release", { kind: "fail" }, 2);
  const releasing = outcomeOf(lease.release());
  const closing = locks.close();
  await clock.advance(1_000);
  await closing;
  assert.equal(await releasing, "released");
  assert.equal(store.resources.size, 0);
});

test("close does not hang on an engine that answers no release", async () => {
  const { clock, engine, locks } = setUp();
  await locks.acquire("a", { callTimeoutMs: 500 });
  engine.inject("release", { kind: "hang", carriedOut: false }, 9);
  let closed = false;
  const closing = locks.close().then(() => {
    closed = true;
  });
  await clock.advance(2_000);
  assert.ok(closed, "three tries of half a second each were enough");
  await closing;
  assert.equal(clock.timers, 0);
});

test("close leaves no timer and no listener", async () => {
  const { clock, locks, other, store } = setUp();
  await locks.acquire("a");
  await locks.acquire("b", { mode: "shared" });
  const waiting = outcomeOf(locks.acquire("a", { ttlMs: 5_000, waitMs: Infinity }));
  await clock.advance(10);
  await locks.close();
  await waiting;
  await other.close();
  await clock.advance(0);
  assert.equal(clock.timers, 0);
  assert.equal(store.changeListeners.size, 0);
  assert.equal(store.resources.size, 0);
});

for (const [kind, options] of Object.entries(KINDS)) {
  test(`close at any instant of an acquire leaves neither a grant nor a held lease (${kind})`, async () => {
    // Everything here runs in microtasks: close is called after 0, 1, 2 … of them.
    for (let at = 0; at < 40; at++) {
      const { clock, locks, store } = setUp();
      const acquiring = outcomeOf(locks.acquire("a", options));
      await microtasks(at);
      await locks.close();
      const outcome = await acquiring;
      await clock.advance(0);
      const lease = outcome as Lease;
      assert.ok(
        outcome instanceof ClosedError || lease.held === false,
        `closed after ${at} microtasks, and a lease is held`,
      );
      assert.equal(store.resources.size, 0, `closed after ${at} microtasks, and a grant is left`);
      assert.equal(clock.timers, 0, `closed after ${at} microtasks, and a timer is left`);
    }
  });

  test(`an abort at any instant of an acquire leaves nothing, or a lease that is held (${kind})`, async () => {
    for (let at = 0; at < 40; at++) {
      const { clock, locks, store } = setUp();
      const controller = new AbortController();
      const reason = new Error("enough");
      const acquiring = outcomeOf(locks.acquire("a", { ...options, signal: controller.signal }));
      await microtasks(at);
      controller.abort(reason);
      const outcome = await acquiring;
      await clock.advance(0);
      if (outcome === reason) {
        assert.equal(
          store.resources.size,
          0,
          `aborted after ${at} microtasks, and a grant is left`,
        );
        assert.equal(clock.timers, 0, `aborted after ${at} microtasks, and a timer is left`);
      } else {
        const lease = outcome as Lease;
        assert.ok(lease.held);
        assert.equal(await lease.release(), "released");
        assert.equal(store.resources.size, 0);
      }
    }
  });
}

for (const kind of ["cohort", "strict", "shared"]) {
  test(`close at any instant of a hand-over between clients leaves nothing (${kind})`, async () => {
    for (let at = 0; at < 40; at++) {
      const { clock, locks, other, store } = setUp();
      const holder = await other.acquire("a");
      const waiting = outcomeOf(locks.acquire("a", KINDS[kind]));
      await clock.advance(10);
      void holder.release();
      await microtasks(at);
      await locks.close();
      const outcome = await waiting;
      await clock.advance(0);
      assert.ok(outcome instanceof ClosedError || (outcome as Lease).held === false);
      assert.equal(store.resources.size, 0, `closed after ${at} microtasks, and something is left`);
    }
  });
}

const KEPT: Record<string, AcquireOptions> = {
  ...KINDS,
  "with a lock-delay": { lockDelayMs: 500 },
};
const NIGHTLY = { atMostMs: 60_000, atLeastMs: 20_000 };

/** Ends some time after it is told to stop. */
async function untilTold({ signal }: Lease, tidy: () => Promise<unknown> = async () => {}) {
  if (!signal.aborted) await new Promise((told) => signal.addEventListener("abort", told));
  await tidy();
  return (signal.reason as LeaseLostError).reason;
}

for (const [kind, options] of Object.entries(KEPT)) {
  test(`a run that ends when close tells it to does not lose its lease, and its lock is free (${kind})`, async () => {
    const { clock, locks, other, store } = setUp();
    const seen: boolean[] = [];
    const running = locks.run("a", options, (lease) =>
      untilTold(lease, async () => {
        seen.push(lease.held, (await other.tryAcquire("a")) !== null);
      }),
    );
    await clock.advance(0);
    await locks.close();
    assert.equal(await running, "closed");
    assert.deepEqual(seen, [false, false], "not held any more, and nobody else is let in yet");
    assert.ok(await other.tryAcquire("a"), "it was not released");
    assert.equal(store.resources.size, 1);
  });

  test(`a run that goes on after close keeps others out until its ttl is over (${kind})`, async () => {
    const { clock, locks, other } = setUp();
    let go = () => {};
    const running = outcomeOf(
      locks.run("a", { ...options, ttlMs: 9_000 }, async () => {
        await new Promise<void>((resolve) => {
          go = resolve;
        });
        return "done";
      }),
    );
    await clock.advance(0);
    const closing = locks.close();
    await clock.advance(1_000);
    await closing;
    assert.equal(await other.tryAcquire("a"), null, "somebody was let in while the run goes on");
    go();
    const lost = await running;
    assert.ok(lost instanceof LeaseLostError && lost.reason === "closed", String(lost));
    assert.equal(await other.tryAcquire("a"), null);
    await clock.advance(9_000);
    assert.ok(await other.tryAcquire("a"));
  });
}

for (const [what, ends] of [
  ["ends when it is told", true],
  ["goes on", false],
] as const) {
  test(`close during a once that ${what} keeps others out for atLeastMs`, async () => {
    const { clock, locks, other } = setUp();
    const fn = (lease: Lease) => (ends ? untilTold(lease) : new Promise<never>(() => {}));
    const running = locks.once("n", NIGHTLY, fn);
    running.catch(() => {});
    await clock.advance(5_000);
    const closing = locks.close();
    await clock.advance(1_000);
    await closing;
    const ran = async () => (await other.once("n", NIGHTLY, () => 1)).ran;
    await clock.advance(13_900);
    assert.equal(await ran(), false);
    await clock.advance(ends ? 200 : NIGHTLY.atMostMs);
    assert.equal(await ran(), true);
  });
}

test("a connect with wrong defaults leaves no listener on the engine", () => {
  const store = new MemoryStore();
  assert.throws(() => new Locks(memoryEngine({ store }), { defaults: { ttlMs: -1 } }), UsageError);
  assert.equal(store.changeListeners.size, 0);
});
