import assert from "node:assert/strict";
import { test } from "node:test";
import type { Engine } from "../../engine.js";
import { ContractError, EngineError, LeaseLostError } from "../../errors.js";
import { Locks } from "../../locks.js";
import { fixed } from "../acquiring/retry.js";
import { outcomeOf } from "../test/set-up.fixture.js";
import { crowd, now, setUp, three } from "./cohort.fixture.js";

test("a failed claim rejects waiters without a retry strategy and keeps those with one", async () => {
  const { clock, engine, locks } = setUp();
  engine.inject("enqueue", { kind: "fail" });
  const without = outcomeOf(locks.acquire("a", { label: "without" }));
  const errors: unknown[] = [];
  const strategy = function* (error: unknown): Generator<number, void, unknown> {
    errors.push(error);
    yield 70;
  };
  const having = locks.acquire("a", { label: "having", retry: strategy });
  await clock.advance(69);
  assert.ok((await without) instanceof EngineError);
  assert.equal(engine.calls("enqueue"), 1);
  await clock.advance(1);
  assert.equal((await now(having)).label, "having");
  assert.ok(errors[0] instanceof EngineError);
});

test("a waiter whose retry strategy ends is rejected with the last error", async () => {
  const { clock, engine, locks } = setUp();
  engine.inject("enqueue", { kind: "fail" }, 9);
  const waiting = outcomeOf(locks.acquire("a", { retry: fixed({ delayMs: 10, times: 2 }) }));
  await clock.advance(20);
  assert.ok((await waiting) instanceof EngineError);
  assert.equal(engine.calls("enqueue"), 3);
  assert.equal(clock.timers, 0);
});

test("a retry generator whose finally throws does not cost a grant", async () => {
  for (const fair of ["cohort", "strict"] as const) {
    const { clock, engine, locks, held } = setUp();
    engine.inject("enqueue", { kind: "fail" });
    const strategy = function* (): Generator<number, void, unknown> {
      try {
        yield 10;
      } finally {
        // biome-ignore lint/correctness/noUnsafeFinally: a strategy of a user who makes mistakes.
        throw new Error("the strategy's own mistake");
      }
    };
    const waiting = outcomeOf(locks.acquire("a", { fair, retry: strategy, waitMs: 1_000 }));
    await clock.advance(2_000);
    const outcome = await now(waiting);
    if (outcome instanceof Error)
      assert.equal(held("a"), 0, `${fair}: failed, and a grant is left`);
    else assert.equal(await outcome.release(), "released");
    assert.equal(held("a"), 0);
  }
});

test("a token that repeats rejects all local waiters with ContractError", async () => {
  const { clock, engine } = setUp();
  const stuck: Engine = Object.assign(Object.create(engine) as Engine, {
    queue: {
      ...engine.queue!,
      enqueue: async (claim: never, call: never) => ({
        ...(await engine.queue!.enqueue(claim, call)),
        token: 7n,
      }),
    },
  });
  const locks = new Locks(stuck, { clock });
  await (await locks.acquire("a")).release();
  const all = [locks.acquire("a"), locks.acquire("a")].map(outcomeOf);
  for (const error of await now(Promise.all(all))) assert.ok(error instanceof ContractError);
});

test("a grant that is lost with the connection fails its holder and waiters, and blocks nobody", async () => {
  const { clock, engine, locks } = setUp();
  const { first, second, third } = await three(locks, clock);
  const waits = [outcomeOf(second), outcomeOf(third)];
  const mend = engine.cut();
  await clock.advance(30_000);
  mend();
  assert.equal(first.held, false);
  assert.ok(first.signal.reason instanceof LeaseLostError);
  assert.equal(await first.release(), "gone");
  // The waiters' own claim failed too, and none of them has a retry strategy.
  for (const wait of waits) assert.ok((await now(wait)) instanceof EngineError);
  assert.ok((await now(locks.acquire("a"))).held);
});

test("after a grant ends at the backend, the waiters make a new claim", async () => {
  const { clock, locks, store } = setUp();
  const { first, second } = await three(locks, clock);
  store.resources.get("a")!.grants.clear();
  await clock.advance(10_000);
  assert.equal(first.held, false);
  const next = await now(second);
  assert.ok(next.held);
  assert.ok(next.token > first.token);
});

test("a waiter behind a holder that reached maxHoldMs is served once the holder has stopped", async () => {
  const { clock, locks } = setUp();
  const first = await locks.acquire("a", { maxHoldMs: 1_000 });
  const second = locks.acquire("a");
  await clock.advance(1_000);
  assert.equal(first.signal.reason.reason, "max-hold");
  assert.equal(await first.release(), "gone");
  await clock.advance(10);
  assert.ok((await now(second)).held);
});

test("a waiter whose graceMs is longer than the grant has left gets no lost lease", async () => {
  const { clock, locks } = setUp();
  const { first, rest } = await crowd(locks, clock, [
    { graceMs: 0, renewEveryMs: 20_000 },
    { graceMs: 25_000 },
  ]);
  await clock.advance(10_000);
  await first.release();
  await clock.advance(10);
  const lease = await now(rest[0]);
  assert.ok(lease.held, "the lease was lost on arrival");
});

test("a grant whose ttl the holder has changed is not handed over", async () => {
  const { clock, locks } = setUp();
  const { first, second } = await three(locks, clock);
  await first.renew({ ttlMs: 3_000 });
  await first.release();
  const next = await now(second);
  await clock.advance(9_000);
  assert.ok(next.held, "asked for 30 s and lost it within 9 s, with a backend that answers");
});

test("a lease that was handed over has its own in-danger event", async () => {
  const { channels } = await import("../../events.js");
  const { clock, engine, locks } = setUp();
  const told: string[] = [];
  const danger = (m: unknown) => told.push(`in danger ${(m as { label: string }).label}`);
  const lost = (m: unknown) => told.push(`lost ${(m as { label: string }).label}`);
  channels["in-danger"].subscribe(danger);
  channels.lost.subscribe(lost);
  // maxHoldMs of 20 s fits into one ttl: the first lease is never renewed, and is in danger at 10
  // s.
  const options = { maxHoldMs: 20_000, renewEveryMs: 1_000 };
  const { first, rest } = await crowd(locks, clock, [
    { ...options, label: "one" },
    { ...options, label: "two" },
  ]);
  await clock.advance(10_500);
  const mend = engine.cut();
  await first.release();
  await now(rest[0]);
  await clock.advance(30_000);
  mend();
  channels["in-danger"].unsubscribe(danger);
  channels.lost.unsubscribe(lost);
  assert.deepEqual(told, ["in danger one", "in danger two", "lost two"]);
});

test("a renewal answered gone after a hand-over ends the lease that uses the grant now", async () => {
  const { clock, engine, locks, store } = setUp();
  const { first, second } = await three(locks, clock);
  let open = () => {};
  const until = new Promise<void>((go) => {
    open = go;
  });
  engine.inject("renew", { kind: "hold-request", until });
  const renewing = outcomeOf(first.renew());
  await first.release();
  const next = await now(second);
  store.resources.get("a")!.grants.clear();
  open();
  await clock.advance(0);
  assert.equal(next.held, false);
  assert.ok((await now(renewing)) instanceof LeaseLostError);
});
