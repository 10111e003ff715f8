import assert from "node:assert/strict";
import { test } from "node:test";
import { queryObjects } from "node:v8";
import { AcquireTimeoutError } from "../../errors.js";
import type { Locks } from "../../locks.js";
import type { Lease } from "../holding/lease.js";
import { outcomeOf } from "../test/set-up.fixture.js";
import { crowd, now, setUp, three } from "./cohort.fixture.js";
import { Cohort } from "./cohort.js";

test("a released lease is handed to the next local waiter without a call", async () => {
  const { clock, engine, locks, held } = setUp();
  const { first, second, third } = await three(locks, clock);
  assert.equal(await first.release(), "released");
  const next = await now(second);
  assert.equal(next.label, "second");
  assert.ok(next.token > first.token);
  assert.equal(first.held, false);
  assert.ok(next.held);
  await next.release();
  const last = await now(third);
  assert.ok(last.token > next.token);
  assert.equal(engine.calls("release"), 1, "only the first lease is released");
  assert.equal(engine.calls("enqueue"), 2, "the claim of the first served all three");
  await last.release();
  assert.equal(engine.calls("release"), 2);
  assert.equal(held("a"), 0);
});

test("check() is true for the token of each hand-over while the grant lives", async () => {
  const { clock, locks } = setUp();
  const { first, second } = await three(locks, clock);
  await first.release();
  const next = await now(second);
  assert.ok(await locks.check(next.sequencer));
  assert.notEqual(next.sequencer, first.sequencer);
});

test("a lease with a renewal under way for another ttl is released, not handed over", async () => {
  for (const ttlMs of [1_000, 90_000]) {
    const { clock, engine, locks } = setUp();
    const { first, second } = await three(locks, clock);
    const renewed = outcomeOf(first.renew({ ttlMs }));
    await first.release();
    const next = await now(second);
    await renewed;
    assert.equal(engine.calls("release"), 2, "the opener's and this one");
    assert.ok(next.remainingMs() > 25_000, `${next.remainingMs()} ms are left`);
    await clock.advance(15_000);
    assert.ok(
      next.remainingMs() > 15_000 && next.remainingMs() <= 30_000,
      "renewed for its own ttl",
    );
  }
});

test("a renewal tells the backend the token in use, and a former token revokes nobody", async () => {
  const { clock, locks, other } = setUp();
  const { first, second } = await three(locks, clock);
  await first.release();
  const next = await now(second);
  await other.revoke("a", { token: first.token });
  await clock.advance(20);
  assert.ok(next.held, "the revocation was for the one before it");
  const [holder] = (await other.inspect("a")).holders;
  assert.deepEqual([holder?.token, holder?.revoked], [next.token, false]);
  assert.equal(await other.revoke("a", { token: next.token }), "revoked");
  await clock.advance(20);
  assert.equal(next.held, false);
});

test("a cohort of one reserves one token", async () => {
  const { locks, other } = setUp();
  await (await locks.acquire("a")).release();
  assert.equal((await other.acquire("a")).token, 2n);
});

test("a token after a used range is above the whole range", async () => {
  const { clock, locks, other } = setUp();
  const { first, second, third } = await three(locks, clock);
  await first.release();
  await (await now(second)).release();
  const last = await now(third);
  await last.release();
  assert.ok((await other.acquire("a")).token > last.token);
});

test("after handOvers hand-overs a cohort lets the backend's queue have its turn", async () => {
  const { clock, locks, other } = setUp({ handOvers: 2, ms: Infinity });
  const order: string[] = [];
  const work = async (label: string, of: Locks) => {
    const lease = await of.acquire("a", { label });
    order.push(label);
    await lease.release();
  };
  const opener = await locks.acquire("a");
  const local = ["1", "2", "3", "4", "5"].map((label) => work(label, locks));
  const remote = work("other", other);
  await opener.release();
  await clock.advance(5_000);
  await now(Promise.all([...local, remote]));
  assert.deepEqual(order, ["1", "2", "3", "other", "4", "5"]);
});

test("after handOverMs a cohort lets the backend's queue have its turn", async () => {
  const { clock, locks, other } = setUp({ handOvers: 1_024, ms: 50 });
  const { first, second } = await three(locks, clock);
  const remote = other.acquire("a", { label: "other" });
  await clock.advance(30);
  await first.release();
  const passed = await now(second);
  await clock.advance(20);
  await passed.release();
  await clock.advance(10);
  assert.ok((await now(remote)).held);
});

test("with handOvers 0 nothing is handed over", async () => {
  const { clock, engine, locks } = setUp({ handOvers: 0 });
  const { first, second } = await three(locks, clock);
  await first.release();
  await now(second);
  assert.equal(engine.calls("release"), 2, "the opener's and the first's");
});

test("a grant with less than a third of its life left is not handed over", async () => {
  const { clock, engine, locks } = setUp();
  const { first, second } = await three(locks, clock);
  const mend = engine.cut();
  await clock.advance(21_000);
  mend();
  assert.ok(first.held);
  await now(first.release());
  await clock.advance(100);
  assert.ok((await now(second)).held);
  assert.equal(engine.calls("release"), 2, "the opener's and the first's");
});

test("waiters of another ttl or lock-delay do not share a grant", async () => {
  const { clock, engine, locks } = setUp();
  const first = await locks.acquire("a", { ttlMs: 10_000 });
  const longer = locks.acquire("a", { ttlMs: 20_000 });
  const delayed = locks.acquire("a", { ttlMs: 10_000, lockDelayMs: 100 });
  await clock.advance(10);
  await first.release();
  await (await now(longer)).release();
  await (await now(delayed)).release();
  assert.equal(engine.calls("release"), 3);
});

test("a leader that times out leaves its claim to the other waiters", async () => {
  const { clock, engine, locks, other } = setUp();
  const holder = await other.acquire("a");
  const leader = outcomeOf(locks.acquire("a", { label: "leader", waitMs: 100 }));
  const follower = locks.acquire("a", { label: "follower" });
  await clock.advance(100);
  assert.ok((await leader) instanceof AcquireTimeoutError);
  await holder.release();
  assert.equal((await now(follower)).label, "follower");
  assert.equal(engine.calls("enqueue"), 1, "the place in the queue was kept");
});

test("the claim leaves the backend's queue when the last local waiter leaves", async () => {
  const { clock, locks, other, queued } = setUp();
  await other.acquire("a");
  const waits = [100, 200].map((waitMs) => outcomeOf(locks.acquire("a", { waitMs })));
  await clock.advance(100);
  assert.equal(queued("a"), 1);
  await clock.advance(100);
  assert.equal(queued("a"), 0);
  for (const error of await Promise.all(waits)) assert.ok(error instanceof AcquireTimeoutError);
});

test("a waiter that comes while an aborted claim is still ending is served", async () => {
  const { clock, locks, other } = setUp();
  const holder = await other.acquire("a");
  const controller = new AbortController();
  const gone = outcomeOf(locks.acquire("a", { signal: controller.signal }));
  await clock.advance(10);
  controller.abort();
  const late = locks.acquire("a");
  await gone;
  await holder.release();
  await clock.advance(10);
  assert.ok((await now(late)).held);
});

test("each local holder has its own maxHoldMs, counted from its own turn", async () => {
  const { clock, locks } = setUp();
  const options = { maxHoldMs: 1_000 };
  const { first, rest } = await crowd(locks, clock, [options, options]);
  await clock.advance(900);
  await first.release();
  const second = await now(rest[0]);
  await clock.advance(900);
  assert.ok(second.held);
  await clock.advance(100);
  assert.equal(second.held, false);
});

test("a pending acquire keeps the process alive although it only waits for a local holder", async () => {
  const { clock, locks } = setUp();
  const patient = { waitMs: Infinity };
  const { rest } = await crowd(locks, clock, [patient, patient, patient]);
  assert.ok(clock.keepingAlive > 0, `${rest.length} acquires are pending, and nothing keeps them`);
});

test("a held lease alone does not keep the process alive", async () => {
  const { clock, locks } = setUp();
  await locks.acquire("a");
  await locks.acquire("b", { fair: "strict" });
  await clock.advance(0);
  assert.ok(clock.timers > 0);
  assert.equal(clock.keepingAlive, 0);
  await clock.advance(60_000);
  assert.equal(clock.keepingAlive, 0);
});

test("tryAcquire returns null without a call while another caller of this process holds or waits", async () => {
  const { clock, engine, locks } = setUp();
  await three(locks, clock);
  assert.equal(await locks.tryAcquire("a"), null);
  assert.equal(engine.calls("tryAcquire"), 0);
});

test("a busy tryAcquire leaves no cohort behind", async () => {
  const { locks, other } = setUp();
  const cohorts = () => queryObjects(Cohort as unknown as new () => Cohort, { format: "count" });
  await other.acquire("seed");
  const before = cohorts();
  for (let i = 0; i < 50; i++) {
    await other.acquire(`r${i}`, { fair: "strict" });
    assert.equal(await locks.tryAcquire(`r${i}`), null);
  }
  assert.ok(cohorts() - before < 10, `${cohorts() - before} cohorts are left of 50`);
});

test("waiters that were served or left leave no cohort behind", async () => {
  const { clock, locks, other } = setUp();
  const cohorts = () => queryObjects(Cohort as unknown as new () => Cohort, { format: "count" });
  const before = cohorts();
  for (let i = 0; i < 50; i++) {
    await (await locks.acquire(`served${i}`)).release();
    await other.acquire(`left${i}`, { fair: "strict" });
    const waiting = outcomeOf(locks.acquire(`left${i}`, { waitMs: 10 }));
    await clock.advance(10);
    await waiting;
  }
  assert.ok(cohorts() - before < 10, `${cohorts() - before} cohorts are left of 100`);
});

test("two hundred local waiters are served in the order in which they asked, never two at once", async () => {
  const { clock, locks } = setUp({ handOvers: 16, ms: 50 });
  const served: number[] = [];
  const tokens: bigint[] = [];
  let inside = 0;
  const work = async (i: number) => {
    const lease: Lease = await locks.acquire("a");
    assert.equal(++inside, 1);
    served.push(i);
    tokens.push(lease.token);
    await Promise.resolve();
    inside--;
    await lease.release();
  };
  const all = Promise.all(Array.from({ length: 200 }, (_, i) => work(i)));
  await clock.advance(1_000);
  await now(all);
  assert.deepEqual(
    served,
    [...served].sort((a, b) => a - b),
  );
  for (let i = 1; i < tokens.length; i++) assert.ok(tokens[i]! > tokens[i - 1]!);
});
