import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Lease } from "../core/holding/lease.js";
import { sleep as pause } from "../core/runtime/clock.js";
import { gate, outcomeOf, setUp } from "../core/test/set-up.fixture.js";
import type { Call, Claim, Engine } from "../engine.js";
import { memoryEngine } from "../engines/memory/index.js";
import { LeaseLostError, UsageError } from "../errors.js";
import { Locks } from "../locks.js";
import { ManualClock } from "../testing/index.js";
import { backends } from "./backends.fixture.js";

/** The same backend without notifications of changes. */
function withoutWatch(engine: Engine): Engine {
  return Object.assign(Object.create(engine) as Engine, {
    watch: undefined,
    close: () => engine.close(),
  });
}

for (const { name, open } of backends()) {
  test(`${name}: of many calls that start together one runs, and the others return ran: false`, async () => {
    await using ours = new Locks(open());
    await using theirs = new Locks(open());
    let runs = 0;
    const results = await Promise.all(
      Array.from({ length: 6 }, (_, i) =>
        [ours, theirs][i % 2]!.once(
          "nightly",
          { atMostMs: 60_000, atLeastMs: 20_000 },
          async (lease) => {
            assert.ok(lease.held);
            return ++runs;
          },
        ),
      ),
    );
    assert.equal(runs, 1);
    assert.equal(results.filter(({ ran }) => ran).length, 1);
    assert.deepEqual(
      results.find(({ ran }) => ran),
      { ran: true, value: 1 },
    );
  });

  test(`${name}: a run that ends early keeps others out until atLeastMs, even after close()`, async () => {
    await using theirs = new Locks(open());
    const ours = new Locks(open());
    const started = performance.now();
    await ours.once("early", { atMostMs: 60_000, atLeastMs: 3_000 }, () => "done");
    await ours.close();
    assert.equal((await theirs.once("early", { atMostMs: 1_000 }, () => 1)).ran, false);
    while (!(await theirs.once("early", { atMostMs: 1_000 }, () => 1)).ran) await sleep(10);
    assert.ok(performance.now() - started >= 2_995);
    assert.ok(performance.now() - started < 30_000, "it did not end before atMostMs");
  });
}

test("a call that does not run returns the holder", async () => {
  const { locks, other } = setUp();
  const done = gate();
  const options = { atMostMs: 1_000, label: "host 1" };
  const running = locks.once("a", options, () => done.opened);
  const result = await other.once("a", { ...options, label: "host 2" }, () => 2);
  assert.ok(!result.ran);
  assert.deepEqual(
    result.holders.map(({ label }) => label),
    ["host 1"],
  );
  done.open();
  assert.equal((await running).ran, true);
});

test("without atLeastMs the next call may run at once, even after a failure", async () => {
  await using locks = new Locks(memoryEngine());
  const options = { atMostMs: 1_000 };
  await assert.rejects(
    locks.once("a", options, () => Promise.reject(new Error("mine"))),
    /mine/,
  );
  assert.deepEqual(await locks.once("a", options, () => 2), { ran: true, value: 2 });
});

test("a run that fails early also keeps others out until atLeastMs", async () => {
  await using locks = new Locks(memoryEngine());
  const options = { atMostMs: 60_000, atLeastMs: 30_000 };
  await assert.rejects(
    locks.once("b", options, () => Promise.reject(new Error("mine"))),
    /mine/,
  );
  assert.equal((await locks.once("b", options, () => 2)).ran, false);
});

test("an atMostMs that the engine cannot keep is named in the error, and not the ttl", async () => {
  await using locks = new Locks(memoryEngine());
  const atMostMs = 366 * 86_400_000;
  await assert.rejects(
    locks.once("c", { atMostMs }, () => 1),
    /^UsageError: atMostMs is 31622400000; .* to 365 days\), which is what memory can keep$/,
  );
});

test("a run that takes longer than atMostMs loses its lease and rejects", async () => {
  const clock = new ManualClock();
  await using locks = new Locks(memoryEngine(), { clock });
  await assert.rejects(
    locks.once("c", { atMostMs: 1_000 }, async (lease) => {
      await clock.pause(1_500);
      assert.equal(lease.held, false);
    }),
    LeaseLostError,
  );
});

const NIGHTLY = { atMostMs: 60_000, atLeastMs: 100 };

test("a run that ends just before atLeastMs is not lost by a slow last renewal", async () => {
  const { clock, engine, locks, other } = setUp();
  const { opened, open } = gate();
  engine.inject("renew", { kind: "hold-reply", until: opened });
  const running = outcomeOf(locks.once("n", NIGHTLY, () => pause(clock, 96, undefined)));
  await clock.advance(96);
  assert.equal(engine.calls("renew"), 1, "the last renewal is under way");
  assert.equal((await other.once("n", NIGHTLY, () => 1)).ran, false, "others are kept out");
  await clock.advance(8);
  open();
  assert.deepEqual(await running, { ran: true, value: undefined });
  assert.equal((await other.once("n", NIGHTLY, () => 1)).ran, true, "its time is over");
});

test("a last renewal whose answer was lost is no loss, although its repeat comes after the end", async () => {
  const { clock, engine, locks, other } = setUp();
  const { opened, open } = gate();
  engine.inject("renew", { kind: "lose-reply" });
  engine.inject("renew", { kind: "hold-request", until: opened });
  const running = outcomeOf(locks.once("n", NIGHTLY, () => pause(clock, 96, undefined)));
  await clock.advance(96);
  assert.equal(engine.calls("renew"), 2, "the repeat is on its way");
  await clock.advance(50);
  const successor = await other.acquire("n");
  open();
  assert.deepEqual(await running, { ran: true, value: undefined });
  assert.ok(successor.held);
});

test("a run whose lease was revoked by force rejects, even if only its last renewal notices", async () => {
  const { clock, engine, locks, other } = setUp();
  const run = async ({ token }: Lease) => {
    await other.revoke("n", { token, force: true });
  };
  const unwatched = new Locks(withoutWatch(engine), { clock });
  await assert.rejects(unwatched.once("n", NIGHTLY, run), LeaseLostError);
  await assert.rejects(locks.once("n", NIGHTLY, run), LeaseLostError);
});

test("a run that was revoked unnoticed keeps nobody out after its end", async () => {
  const { clock, engine, other, held } = setUp();
  const unwatched = new Locks(withoutWatch(engine), { clock });
  await unwatched.once("n", NIGHTLY, async ({ token }) => {
    assert.equal(await other.revoke("n", { token }), "revoked");
  });
  assert.equal(held("n"), 0);
});

test("close() waits for the last renewal of a run", async () => {
  const { clock, engine, locks, other } = setUp();
  const { opened, open } = gate();
  engine.inject("renew", { kind: "hold-request", until: opened });
  const running = locks.once("n", NIGHTLY, () => 1);
  await clock.advance(10);
  const closing = locks.close();
  await clock.advance(10);
  open();
  assert.deepEqual(await running, { ran: true, value: 1 });
  await closing;
  assert.equal((await other.once("n", NIGHTLY, () => 1)).ran, false);
  await clock.advance(100);
  assert.equal((await other.once("n", NIGHTLY, () => 1)).ran, true);
});

/** Returns the first grants like a session that was not confirmed for this long. */
function withOldGrants(engine: Engine, oldMs: number, count: number): Engine {
  let given = 0;
  return Object.assign(Object.create(engine) as Engine, {
    tryAcquire: async (claim: Claim, call: Call) => {
      if (given++ >= count) return engine.tryAcquire(claim, call);
      const { ttlMs } = claim;
      const answer = await engine.tryAcquire({ ...claim, ttlMs: ttlMs - oldMs }, call);
      return answer.kind === "granted" ? { ...answer, since: answer.since - oldMs, ttlMs } : answer;
    },
  });
}

const DAILY = { atMostMs: 1_000, atLeastMs: 1_000 };

test("a run does not begin under a grant that would end before atLeastMs", async () => {
  const { clock, engine, held } = setUp();
  const once = new Locks(withOldGrants(engine, 600, 1), { clock });
  const run = (lease: Lease) => lease.remainingMs();
  const result = await once.once("n", DAILY, run);
  assert.ok(result.ran && result.value === 1_000, "the second one is a fresh one");
  const always = new Locks(withOldGrants(engine, 600, Infinity), { clock });
  const failure = { code: "ENGINE", effect: "none", retryable: true };
  await assert.rejects(always.once("m", DAILY, run), failure);
  assert.equal(held("m"), 0, "it was not released");
});

test("a process that dies during its run keeps others out for atLeastMs, even if atMostMs is the same", async () => {
  const { clock, engine, other } = setUp();
  const dying = new Locks(withOldGrants(engine, 300, 1), { clock });
  const lost = assert.rejects(
    dying.once("n", DAILY, () => pause(clock, 5_000, undefined)),
    LeaseLostError,
  );
  const ran = async () => (await other.once("n", DAILY, () => 1)).ran;
  await clock.advance(999);
  assert.equal(await ran(), false);
  await clock.advance(1_000);
  assert.equal(await ran(), true);
  await clock.advance(5_000);
  await lost;
});

test("once checks its options before any call", async () => {
  await using locks = new Locks(memoryEngine());
  const fn = () => 1;
  await assert.rejects(locks.once("d", { atMostMs: 0 }, fn), UsageError);
  await assert.rejects(locks.once("d", { atMostMs: 10, atLeastMs: 20 }, fn), UsageError);
  await assert.rejects(locks.once("d", { atMostMs: 1_000 }, undefined as never), UsageError);
});

test("once refuses arguments in a wrong order or number, and names the right order", async () => {
  const { engine, locks } = setUp();
  const once = locks.once.bind(locks) as (...args: unknown[]) => Promise<unknown>;
  const fn = () => 1;
  const order = /once is called as once\(name, options, fn\), and got once\(name/;
  const options = { atMostMs: 1_000 };
  for (const args of [
    ["a", fn],
    ["a", fn, options],
    ["a", options],
    ["a", options, fn, 5],
    ["a"],
  ]) {
    await assert.rejects(once(...args), (error) => {
      assert.ok(error instanceof UsageError, String(error));
      assert.match(error.message, order);
      return true;
    });
  }
  assert.equal(engine.calls("tryAcquire"), 0);
});
