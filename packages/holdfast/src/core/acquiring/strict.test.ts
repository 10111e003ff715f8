import assert from "node:assert/strict";
import { test } from "node:test";
import { LeaseLostError } from "../../errors.js";
import type { Locks } from "../../locks.js";
import type { AcquireOptions } from "../../options.js";
import { now } from "../cohort/cohort.fixture.js";
import { outcomeOf, setUp as plainSetUp } from "../test/set-up.fixture.js";

const STRICT = { fair: "strict", waitMs: 600_000 } as const;

/** Two connections, and a function that records who holds the resource. */
function setUp() {
  const plain = plainSetUp();
  const served: string[] = [];
  const tokens: bigint[] = [];
  let inside = 0;
  const visit = async (who: string, locks: Locks, options: AcquireOptions = STRICT) => {
    const lease = await locks.acquire("a", options);
    assert.equal(++inside, options.mode === "shared" ? inside : 1);
    served.push(who);
    tokens.push(lease.token);
    await Promise.resolve();
    inside--;
    await lease.release();
  };
  return { ...plain, served, tokens, visit };
}

test("each strict waiter of a process has its own claim and place, shown by inspect", async () => {
  const { engine, locks, other, visit, served, tokens } = setUp();
  const holder = await locks.acquire("a", STRICT);
  const visits = ["1", "2", "3"].map((who) => visit(who, locks, { ...STRICT, label: who }));
  assert.equal(engine.calls("enqueue"), 4, "a claim was held back");
  const { waiters } = await other.inspect("a");
  assert.deepEqual(
    waiters.map(({ label }) => label),
    ["1", "2", "3"],
  );
  await holder.release();
  await now(Promise.all(visits));
  assert.deepEqual(served, ["1", "2", "3"]);
  assert.ok(holder.token < tokens[0]! && tokens[0]! < tokens[1]! && tokens[1]! < tokens[2]!);
  assert.equal(engine.calls("release"), 4, "a lease was handed over");
});

test("strict waiters of all processes are served in the order of arrival", async () => {
  const { clock, locks, other, visit, served } = setUp();
  const holder = await locks.acquire("a", STRICT);
  const visits = [visit("1", locks), visit("2", locks), visit("theirs", other)];
  visits.push(visit("3", locks), visit("4", locks), visit("their last", other));
  await clock.advance(0);
  await holder.release();
  await now(Promise.all(visits));
  assert.deepEqual(served, ["1", "2", "theirs", "3", "4", "their last"]);
});

test("a holder that acquires again at once goes behind the waiters that came before", async () => {
  const { locks, other, visit, served } = setUp();
  const holder = await locks.acquire("a", STRICT);
  const visits = [visit("ours", locks), visit("theirs", other)];
  const released = holder.release();
  visits.push(visit("again", locks));
  await now(Promise.all([released, ...visits]));
  assert.deepEqual(served, ["ours", "theirs", "again"]);
});

test("neither a reader nor a cohort overtakes strict waiters that came before", async () => {
  for (const [who, options] of [
    ["reader", { waitMs: 600_000, mode: "shared" }],
    ["neighbour", { waitMs: 600_000 }],
    ["unrenewed", { ...STRICT, renew: false }],
    ["of another ttl", { ...STRICT, ttlMs: 9_000 }],
  ] as const) {
    const { clock, locks, visit, served } = setUp();
    const holder = await locks.acquire("a", STRICT);
    const visits = [visit("1", locks), visit("2", locks), visit(who, locks, options)];
    await clock.advance(0);
    await holder.release();
    await now(Promise.all(visits));
    assert.deepEqual(served, ["1", "2", who]);
  }
});

test("a strict waiter that is aborted is skipped, and nothing is left when all are", async () => {
  const { clock, locks, queued, held, visit, served } = setUp();
  const holder = await locks.acquire("a", STRICT);
  const [one, all] = [new AbortController(), new AbortController()];
  const leaving = outcomeOf(locks.acquire("a", { ...STRICT, signal: one.signal }));
  const staying = visit("staying", locks);
  await clock.advance(0);
  assert.equal(queued("a"), 2);
  one.abort(new Error("enough"));
  assert.equal(((await leaving) as Error).message, "enough");
  await holder.release();
  await now(staying);
  assert.deepEqual(served, ["staying"]);

  const second = await locks.acquire("a", STRICT);
  const waits = [1, 2].map(() => outcomeOf(locks.acquire("a", { ...STRICT, signal: all.signal })));
  await clock.advance(0);
  all.abort(new Error("all"));
  for (const wait of waits) assert.equal(((await wait) as Error).message, "all");
  await clock.advance(0);
  assert.equal(queued("a"), 0);
  await second.release();
  await clock.advance(0);
  assert.equal(held("a"), 0);
  assert.equal(clock.timers, 0);
});

test("a strict waiter keeps its place when its neighbour's grant is lost", async () => {
  const { clock, locks, other, visit, served } = setUp();
  const opener = await locks.acquire("a", STRICT);
  const holding = locks.acquire("a", STRICT);
  const waiting = visit("2", locks);
  const theirs = visit("theirs", other);
  await clock.advance(0);
  await opener.release();
  const lease = await now(holding);
  await other.revoke("a", { token: lease.token, force: true });
  await clock.advance(20_000);
  await now(Promise.all([waiting, theirs]));
  assert.equal(lease.held, false);
  assert.ok(lease.signal.reason instanceof LeaseLostError);
  assert.deepEqual(served, ["2", "theirs"]);
});

test("close ends strict waiters and leaves no timer", async () => {
  const { clock, locks, queued } = setUp();
  await locks.acquire("a", STRICT);
  const waits = [1, 2].map(() => outcomeOf(locks.acquire("a", STRICT)));
  await clock.advance(0);
  assert.equal(queued("a"), 2);
  await now(locks.close());
  for (const wait of waits) assert.match(String(await wait), /were closed/);
  assert.equal(queued("a"), 0);
  assert.equal(clock.timers, 0);
});
