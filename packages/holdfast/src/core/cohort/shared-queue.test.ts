import assert from "node:assert/strict";
import { test } from "node:test";
import { AcquireTimeoutError, ClosedError, EngineError, UsageError } from "../../errors.js";
import type { AcquireOptions } from "../../options.js";
import { fixed } from "../acquiring/retry.js";
import type { Lease } from "../holding/lease.js";
import { gate, outcomeOf, setUp } from "../test/set-up.fixture.js";
import { MOST_CLAIMS } from "./shared-queue.js";

const PERMITS = 2;
const MANY = MOST_CLAIMS * 3;
const PERMIT: AcquireOptions = { mode: "shared", limit: PERMITS, waitMs: Infinity };
const WRITER: AcquireOptions = { mode: "exclusive", fair: "strict" };

/** Another client keeps everybody waiting. */
async function kept() {
  const all = setUp();
  const keeper = await all.other.acquire("a", WRITER);
  return { ...all, keeper };
}

type Kept = Awaited<ReturnType<typeof kept>>;

/** Starts this many waiters, and lists them in the order in which they are served. */
function crowd({ locks }: Kept, n: number, options: AcquireOptions = {}) {
  const served: number[] = [];
  const outcomes = Array.from({ length: n }, (_, i) =>
    outcomeOf(
      locks.acquire("a", { ...PERMIT, ...options }).then((lease) => {
        served.push(i);
        return lease;
      }),
    ),
  );
  return { served, outcomes };
}

async function releaseAll({ clock }: Kept, outcomes: readonly Promise<Lease | Error>[]) {
  for (const outcome of outcomes) {
    const lease = await Promise.race([outcome, clock.advance(1_000).then(() => null)]);
    if (lease !== null && !(lease instanceof Error)) await lease.release();
  }
}

const upTo = (n: number) => Array.from({ length: n }, (_, i) => i);

test("many shared waiters have few claims at the backend, and are served in order", async () => {
  const s = await kept();
  const { served, outcomes } = crowd(s, MANY);
  await s.clock.advance(10);
  assert.equal(s.queued("a"), MOST_CLAIMS);
  await s.keeper.release();
  await s.clock.advance(1);
  assert.equal(s.held("a"), PERMITS, "the first have it, and the next claims follow at once");
  assert.equal(s.queued("a"), MOST_CLAIMS);
  await releaseAll(s, outcomes);
  assert.deepEqual(served, upTo(MANY));
  assert.equal(s.engine.calls("enqueue"), MANY);
  assert.equal(s.store.resources.size, 0);
  assert.equal(s.clock.timers, 0);
});

test("strict shared waiters have a claim each", async () => {
  const s = await kept();
  const { outcomes } = crowd(s, MANY, { fair: "strict" });
  await s.clock.advance(10);
  assert.equal(s.queued("a"), MANY);
  await s.locks.close();
  for (const outcome of outcomes) assert.ok((await outcome) instanceof ClosedError);
});

test("an aborted waiter leaves its place at the backend to a waiter that has none", async () => {
  const s = await kept();
  const controller = new AbortController();
  const gone = crowd(s, MOST_CLAIMS - 1, { signal: controller.signal });
  const { served, outcomes } = crowd(s, MOST_CLAIMS + 5);
  const rival = outcomeOf(s.other.acquire("a", { ...PERMIT, fair: "strict" }));
  await s.clock.advance(10);
  controller.abort(new Error("enough"));
  await s.clock.advance(10);
  for (const outcome of gone.outcomes) assert.equal(((await outcome) as Error).message, "enough");
  assert.equal(
    s.engine.calls("withdraw") + s.engine.calls("release"),
    0,
    "a place at the backend was given up",
  );
  assert.equal(s.queued("a"), MOST_CLAIMS + 1, "the others have all places, and the rival its own");
  await s.keeper.release();
  await releaseAll(s, outcomes.slice(0, MOST_CLAIMS));
  await s.clock.advance(10);
  assert.ok(!((await rival) instanceof Error), "only five came to the backend after the rival");
  assert.equal(served.length, MOST_CLAIMS + 1);
  await s.locks.close();
  assert.equal((await s.other.inspect("a")).waiters.length, 0);
});

test("the claim of the last waiter is withdrawn when nobody can take it over", async () => {
  const s = await kept();
  const controller = new AbortController();
  const { outcomes } = crowd(s, 3, { signal: controller.signal });
  await s.clock.advance(10);
  assert.equal(s.queued("a"), 3);
  controller.abort(new Error("enough"));
  await s.clock.advance(10);
  for (const outcome of outcomes) assert.ok((await outcome) instanceof Error);
  assert.equal(s.queued("a"), 0);
  await s.keeper.release();
  assert.equal(s.store.resources.size, 0);
});

test("a waiter without a claim times out after waitMs, and its error names the holder", async () => {
  const s = await kept();
  crowd(s, MOST_CLAIMS);
  await s.clock.advance(10);
  const waiting = outcomeOf(s.locks.acquire("a", { ...PERMIT, waitMs: 3_000 }));
  await s.clock.advance(2_999);
  const early = await Promise.race([waiting, s.clock.advance(0).then(() => null)]);
  assert.equal(early, null);
  await s.clock.advance(1);
  const error = await waiting;
  assert.ok(error instanceof AcquireTimeoutError);
  assert.equal(error.holders[0]?.token, s.keeper.token);
  await s.locks.close();
});

test("a waiter whose first answer is on its way waits a moment longer than waitMs", async () => {
  const { clock, engine, locks } = setUp();
  const { opened, open } = gate();
  engine.inject("enqueue", { kind: "hold-reply", until: opened });
  const waiting = outcomeOf(locks.acquire("a", { ...PERMIT, waitMs: 10 }));
  await clock.advance(40);
  open();
  await clock.advance(1);
  const lease = await waiting;
  assert.ok(!(lease instanceof Error) && lease.held);
});

test("a waiter that gets no answer within waitMs is told that the backend is silent", async () => {
  const { clock, engine, locks } = setUp();
  engine.inject("enqueue", { kind: "hang", carriedOut: false }, MANY);
  const retry = fixed({ delayMs: 1 });
  const options = { ...PERMIT, waitMs: 2_000, callTimeoutMs: 3_000, retry };
  const waiting = Array.from({ length: MANY }, () => outcomeOf(locks.acquire("a", options)));
  await clock.advance(2_051);
  for (const outcome of waiting) assert.ok((await outcome) instanceof EngineError);
  engine.cut("none")();
  const closing = locks.close();
  await clock.advance(20_000);
  await closing;
});

test("another limit is refused at once, also behind waiters without a claim", async () => {
  const s = await kept();
  crowd(s, MANY);
  await s.clock.advance(10);
  const calls = s.engine.calls("enqueue");
  const error = await outcomeOf(s.locks.acquire("a", { ...PERMIT, limit: 5 }));
  assert.ok(error instanceof UsageError);
  assert.match(error.message, /in use with limit 2, and this claim asks for limit 5/);
  assert.equal(s.engine.calls("enqueue"), calls);
  await s.locks.close();
});

test("waiters with a wrong limit do not block others", async () => {
  const { clock, locks, other } = setUp();
  const holder = await other.acquire("a", { ...PERMIT, fair: "strict" });
  const wrong = outcomeOf(locks.acquire("a", { ...PERMIT, limit: 5 }));
  const right = outcomeOf(locks.acquire("a", PERMIT));
  await clock.advance(10);
  assert.ok((await wrong) instanceof UsageError);
  assert.ok(!((await right) instanceof Error));
  await holder.release();
});

test("a claim that fails rejects its own waiter, and no other", async () => {
  const s = await kept();
  s.engine.inject("enqueue", { kind: "fail" });
  const { served, outcomes } = crowd(s, MANY);
  await s.clock.advance(10);
  assert.ok((await outcomes[0]) instanceof EngineError);
  assert.equal(s.queued("a"), MOST_CLAIMS, "the next one has sent a claim instead");
  await s.keeper.release();
  await releaseAll(s, outcomes.slice(1));
  assert.deepEqual(served, upTo(MANY).slice(1));
  assert.equal(s.store.resources.size, 0);
});

test("when every claim fails, waiters without a claim fail at once with the same error", async () => {
  const s = setUp();
  const mend = s.engine.cut("none");
  const { outcomes } = crowd({ ...s } as Kept, MANY);
  await s.clock.advance(10);
  for (const outcome of outcomes) assert.ok((await outcome) instanceof EngineError);
  assert.equal(s.engine.calls("enqueue"), MOST_CLAIMS);
  mend();
  assert.equal(s.clock.timers, 0);
});

test("waiters with a retry strategy survive a lost connection, in order", async () => {
  const s = await kept();
  const mend = s.engine.cut("none");
  const retry = fixed({ delayMs: 100 });
  const { served, outcomes } = crowd(s, MANY, { retry });
  await s.clock.advance(1_000);
  mend();
  await s.keeper.release();
  await releaseAll(s, outcomes);
  assert.deepEqual(
    [...served].sort((a, b) => a - b),
    upTo(MANY),
  );
  assert.equal(s.store.resources.size, 0);
});

test("a waiter that took over a claim sends its own when that one fails", async () => {
  const s = await kept();
  const controller = new AbortController();
  const { outcomes: gone } = crowd(s, MOST_CLAIMS, { signal: controller.signal });
  const { served, outcomes } = crowd(s, MOST_CLAIMS);
  await s.clock.advance(10);
  controller.abort(new Error("enough"));
  for (const outcome of gone) assert.ok((await outcome) instanceof Error);
  // The backend forgets all places, and lets nobody join the queue for a moment.
  const { queue } = s.store.resources.get("a")!;
  for (const { claim } of [...queue]) queue.leave(claim.grantId);
  s.engine.inject("enqueue", { kind: "fail" }, MOST_CLAIMS);
  await s.clock.advance(2_000);
  assert.equal(s.queued("a"), MOST_CLAIMS, "each of them has sent a claim of its own");
  await s.keeper.release();
  await releaseAll(s, outcomes);
  assert.deepEqual(served, upTo(MOST_CLAIMS));
});

test("the first waiter gets the first grant, no matter which claim was granted", async () => {
  const s = setUp();
  const { opened, open } = gate();
  s.engine.inject("enqueue", { kind: "hold-reply", until: opened });
  const { served, outcomes } = crowd(s as Kept, 2);
  await s.clock.advance(1);
  assert.deepEqual(served, [0], "by the answer to the second one's claim");
  open();
  await s.clock.advance(1);
  assert.deepEqual(served, [0, 1]);
  await releaseAll(s as Kept, outcomes);
  assert.equal(s.store.resources.size, 0);
});

test("a waiter whose grant went to the first waiter is served although the claim it got fails", async () => {
  const s = setUp();
  const { opened, open } = gate();
  s.engine.inject("enqueue", { kind: "hold-request", until: opened });
  const { served, outcomes } = crowd(s as Kept, 2, { callTimeoutMs: 1_000 });
  await s.clock.advance(1_500);
  assert.deepEqual(served, [0, 1]);
  open();
  await s.clock.advance(1);
  await releaseAll(s as Kept, outcomes);
  assert.equal(s.store.resources.size, 0, "the request that came late finds a tombstone");
});

test("tryAcquire does not overtake waiters without a claim", async () => {
  const s = await kept();
  crowd(s, MANY);
  await s.clock.advance(10);
  const calls = s.engine.calls("tryAcquire");
  const { mode, limit } = PERMIT;
  assert.equal(await s.locks.tryAcquire("a", { mode: mode!, limit: limit! }), null);
  assert.equal(s.engine.calls("tryAcquire"), calls);
  await s.locks.close();
});

test("close ends all shared waiters, and leaves nothing at the backend", async () => {
  const s = await kept();
  const { outcomes } = crowd(s, MANY);
  await s.clock.advance(10);
  await s.locks.close();
  for (const outcome of outcomes) assert.ok((await outcome) instanceof ClosedError);
  assert.equal(s.queued("a"), 0);
  assert.equal(s.engine.calls("enqueue"), MOST_CLAIMS, "a claim was sent during close");
  await s.keeper.release();
  await s.other.close();
  assert.equal(s.clock.timers, 0);
});

test("waiters on different terms have separate queues", async () => {
  const s = await kept();
  crowd(s, MANY);
  crowd(s, MANY, { ttlMs: 5_000 });
  crowd(s, 3, { label: "another" });
  await s.clock.advance(10);
  assert.equal(s.queued("a"), 2 * MOST_CLAIMS + 3);
  await s.locks.close();
});
