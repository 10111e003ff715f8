import assert from "node:assert/strict";
import { test } from "node:test";
import type { Engine, RenewRef } from "../../engine.js";
import { EngineError, LeaseLostError, UsageError } from "../../errors.js";
import { Locks } from "../../locks.js";
import { gate, outcomeOf, setUp } from "../test/set-up.fixture.js";

test("a renew() that hangs once does not cost the lease", async () => {
  const { clock, engine, locks } = setUp();
  const lease = await locks.acquire("a", { ttlMs: 3_000 });
  engine.inject("renew", { kind: "hang", carriedOut: false });
  const renewing = outcomeOf(lease.renew());
  await clock.advance(10_000);
  assert.ok(lease.held, "the keeper alone would have survived this");
  assert.equal(await renewing, undefined);
});

test("a renew() whose tries outlast the lease rejects with the loss, and the failure as its cause", async () => {
  const { clock, engine, locks } = setUp();
  const lease = await locks.acquire("a", { ttlMs: 3_000 });
  engine.inject("renew", { kind: "hang", carriedOut: false }, 9);
  const renewing = outcomeOf(lease.renew());
  await clock.advance(10_000);
  const error = await renewing;
  assert.equal(lease.held, false);
  assert.ok(error instanceof LeaseLostError, String(error));
  assert.equal(error, lease.signal.reason);
  assert.ok(error.cause instanceof EngineError);
});

test("a renew() that fails while the lease is valid rejects with the failure", async () => {
  const { engine, locks, clock } = setUp();
  const lease = await locks.acquire("a", { ttlMs: 30_000 });
  engine.inject("renew", { kind: "fail" }, 3);
  const renewing = outcomeOf(lease.renew());
  await clock.advance(200);
  assert.ok((await renewing) instanceof EngineError);
  assert.ok(lease.held);
});

test("a lease is kept alive with a shorter ttl after renew()", async () => {
  const { clock, locks } = setUp();
  const lease = await locks.acquire("a", { ttlMs: 30_000 });
  await lease.renew({ ttlMs: 3_000 });
  await clock.advance(20_000);
  assert.ok(lease.held, "the keeper renewed at the old interval");
});

test("a lease is kept alive with a longer ttl after renew()", async () => {
  const { clock, engine, locks } = setUp();
  const lease = await locks.acquire("a", { ttlMs: 3_000 });
  await lease.renew({ ttlMs: 60_000 });
  assert.ok(lease.remainingMs() > 55_000);
  await clock.advance(10_000);
  engine.cut();
  await clock.advance(30_000);
  assert.ok(lease.held);
});

test("after a renew() with a shorter ttl and no answer, the loss comes before the shorter validity ends", async () => {
  const { clock, engine, locks } = setUp();
  const lease = await locks.acquire("a", { ttlMs: 30_000, graceMs: 100 });
  await clock.advance(100);
  let abortedAt = Infinity;
  const t0 = clock.now();
  lease.signal.addEventListener("abort", () => {
    abortedAt = clock.now() - t0;
  });
  engine.inject("renew", { kind: "hang", carriedOut: true }, 9);
  const renewing = outcomeOf(lease.renew({ ttlMs: 500 }));
  await clock.advance(5_000);
  assert.ok(
    abortedAt <= 500,
    `the backend's grant ended at 500 ms, the signal came at ${abortedAt}`,
  );
  await clock.advance(20_000);
  assert.ok((await renewing) instanceof Error);
});

test("a renew() with a shorter ttl that arrives late cannot make two holders", async () => {
  const { clock, engine, locks, other } = setUp();
  const lease = await locks.acquire("a", { ttlMs: 30_000, callTimeoutMs: 200 });
  const { opened, open } = gate();
  engine.inject("renew", { kind: "hold-request", until: opened });
  const shrinking = outcomeOf(lease.renew({ ttlMs: 3_000 }));
  await clock.advance(300);
  await shrinking;
  await outcomeOf(lease.renew({ ttlMs: 30_000 }));
  open();
  await clock.advance(1);
  engine.cut();
  await clock.advance(4_000);
  const successor = await other.tryAcquire("a");
  assert.ok(!(successor?.held && lease.held), "two clients hold the resource");
});

test("renew() refuses a ttl that acquire would refuse, before any call", async () => {
  const { engine, locks } = setUp();
  const lease = await locks.acquire("a");
  for (const ttlMs of [0, -1, 1.5, Number.NaN, Infinity, 1e15, "5000" as unknown as number]) {
    await assert.rejects(lease.renew({ ttlMs }), UsageError, `ttlMs: ${ttlMs}`);
    assert.ok(lease.held, `ttlMs: ${ttlMs} ended the lease`);
  }
  assert.equal(engine.calls("renew"), 0);
});

test("renew() of a released lease is a UsageError, of a lost lease the LeaseLostError", async () => {
  const { clock, locks } = setUp();
  const released = await locks.acquire("a");
  await released.release();
  await assert.rejects(released.renew(), UsageError);
  const lost = await locks.acquire("b", { ttlMs: 1_000 });
  clock.pause(2_000);
  await assert.rejects(lost.renew(), LeaseLostError);
});

test("two renew() at once and the keeper's own renewal do not overlap", async () => {
  const { clock, engine } = setUp();
  let under = 0;
  let most = 0;
  const slow: Engine = Object.assign(Object.create(engine) as Engine, {
    renew: async (refs: readonly RenewRef[], call: never) => {
      most = Math.max(most, ++under);
      await new Promise<void>((go) => clock.timer(50, go, false));
      under--;
      return engine.renew(refs, call);
    },
  });
  const locks = new Locks(slow, { clock });
  const lease = await locks.acquire("a", { ttlMs: 3_000 });
  await clock.advance(1_000);
  const both = Promise.all([lease.renew(), lease.renew({ ttlMs: 4_000 })]);
  await clock.advance(1_000);
  await both;
  assert.equal(most, 1);
});

test("a release that begins while a renewal is under way wins", async () => {
  const { clock, engine, locks, other, store } = setUp();
  const lease = await locks.acquire("a", { ttlMs: 3_000 });
  const { opened, open } = gate();
  engine.inject("renew", { kind: "hold-request", until: opened });
  await clock.advance(1_000);
  assert.equal(await lease.release(), "released");
  const successor = await other.acquire("a");
  open();
  await clock.advance(100);
  assert.ok(successor.held);
  assert.equal(store.resources.get("a")!.grants.size, 1);
  assert.equal(lease.signal.aborted, false);
});

test("a loss that is reported while a renew() rests before its next try is noticed at once", async () => {
  const { clock, engine, locks, other } = setUp();
  const lease = await locks.acquire("a", { ttlMs: 30_000 });
  engine.inject("renew", { kind: "fail" }, 2);
  const renewing = outcomeOf(lease.renew());
  await clock.advance(0);
  assert.equal(engine.calls("renew"), 2, "the third try did not wait for its rest");
  await other.revoke("a", { token: lease.token, force: true });
  await clock.advance(0);
  assert.equal(engine.calls("renew"), 3, "the reported change did not end the rest");
  assert.equal(lease.held, false, "the lease is held although it was revoked by force");
  assert.ok((await renewing) instanceof LeaseLostError);
});

test("a change reported during a renew() makes its repeats follow without a rest", async () => {
  const { clock, engine, locks, other } = setUp();
  const lease = await locks.acquire("a", { ttlMs: 30_000 });
  const { opened, open } = gate();
  const lost = new EngineError("lost", { effect: "unknown", retryable: true });
  const until = opened.then(() => Promise.reject(lost));
  engine.inject("renew", { kind: "hold-request", until });
  engine.inject("renew", { kind: "fail" });
  const renewing = outcomeOf(lease.renew());
  await clock.advance(0);
  await other.revoke("a", { token: lease.token, force: true });
  await clock.advance(0);
  assert.equal(engine.calls("renew"), 1);
  open();
  await clock.advance(0);
  assert.equal(engine.calls("renew"), 3, "a try waited for a rest");
  assert.equal(lease.held, false);
  assert.ok((await renewing) instanceof LeaseLostError);
});

test("reported changes give a renew() no extra tries", async () => {
  const { clock, engine, locks, other } = setUp();
  const lease = await locks.acquire("a", { ttlMs: 30_000, renew: false });
  engine.inject("renew", { kind: "fail" }, 9);
  const renewing = outcomeOf(lease.renew());
  for (let i = 0; i < 5; i++) {
    await clock.advance(0);
    await other.revoke("a", { token: lease.token, force: false });
  }
  await clock.advance(0);
  assert.equal(engine.calls("renew"), 3);
  assert.ok((await renewing) instanceof Error);
});
