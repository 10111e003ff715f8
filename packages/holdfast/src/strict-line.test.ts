import assert from "node:assert/strict";
import { test } from "node:test";
import { now } from "./cohort.fixture.js";
import { altered } from "./conformance/wrong-engines/altered.js";
import { memoryEngine } from "./engines/memory/index.js";
import { LeaseLostError } from "./errors.js";
import { Locks } from "./locks.js";
import type { AcquireOptions } from "./options.js";
import { gate, outcomeOf, stage as plainStage } from "./stage.fixture.js";
import { ManualClock } from "./testing/index.js";

const STRICT = { fair: "strict", waitMs: 600_000 } as const;
const GATHERED_MS = 3;

/** A stage, and work that notes who is inside. */
function stage() {
  const plain = plainStage();
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

test("strict waiters that come together behind their neighbour share one place, in their order", async () => {
  const { clock, engine, locks, inLine, visit, served, tokens } = stage();
  const holder = await locks.acquire("a", STRICT);
  const visits = ["1", "2", "3"].map((who) => visit(who, locks));
  await clock.advance(GATHERED_MS);
  assert.equal(inLine("a"), 1);
  await holder.release();
  await now(Promise.all(visits));
  assert.deepEqual(served, ["1", "2", "3"]);
  assert.ok(holder.token < tokens[0]! && tokens[0]! < tokens[1]! && tokens[1]! < tokens[2]!);
  assert.equal(engine.calls("enqueue"), 2, "the holder's and the party's");
  assert.equal(engine.calls("release"), 2);
});

test("nobody joins a party that was sent: all are served in the order of arrival", async () => {
  const { clock, locks, other, visit, served } = stage();
  const holder = await locks.acquire("a", STRICT);
  const visits = [visit("1", locks), visit("2", locks)];
  await clock.advance(GATHERED_MS);
  visits.push(visit("theirs", other));
  await clock.advance(0);
  visits.push(visit("3", locks), visit("4", locks));
  await clock.advance(GATHERED_MS);
  visits.push(visit("their last", other));
  await clock.advance(GATHERED_MS);
  await holder.release();
  await clock.advance(10);
  await now(Promise.all(visits));
  assert.deepEqual(served, ["1", "2", "theirs", "3", "4", "their last"]);
});

test("those who are gathered are held back for a blink and no longer", async () => {
  const { clock, engine, locks } = stage();
  await locks.acquire("a", STRICT);
  void locks.acquire("a", STRICT).catch(() => {});
  await clock.advance(GATHERED_MS - 1);
  assert.equal(engine.calls("enqueue"), 1);
  await clock.advance(1);
  assert.equal(engine.calls("enqueue"), 2);
  await locks.close();
});

test("the first of a process is not held back, whoever holds the resource elsewhere", async () => {
  const { engine, locks, other } = stage();
  await other.acquire("a");
  void locks.acquire("a", STRICT).catch(() => {});
  assert.equal(engine.calls("enqueue"), 1);
  await locks.close();
});

test("whoever gives the resource back and wants it again goes along with those gathered meanwhile", async () => {
  const { clock, engine, locks, inLine } = stage();
  const holder = await locks.acquire("a", STRICT);
  const answer = gate();
  engine.inject("release", { kind: "hold-reply", until: answer.opened });
  const order: string[] = [];
  const again = holder.release().then(() => locks.acquire("a", { ...STRICT }));
  void again.then(() => order.push("again"));
  const gathered = locks.acquire("a", STRICT);
  void gathered.then(() => order.push("gathered"));
  assert.equal(engine.calls("enqueue"), 1, "not before the release is answered");
  answer.open();
  const lease = await now(gathered);
  assert.equal(inLine("a"), 0);
  assert.equal(engine.calls("enqueue"), 2);
  await lease.release();
  await (await now(again)).release();
  assert.deepEqual(order, ["gathered", "again"]);
  assert.equal(engine.calls("enqueue"), 2, "one claim for both");
  await clock.advance(0);
});

test("a release that is never answered does not keep those gathered", async () => {
  const { clock, engine, locks } = stage();
  const holder = await locks.acquire("a", STRICT);
  engine.inject("release", { kind: "hang", carriedOut: true });
  const released = holder.release();
  const next = locks.acquire("a", STRICT);
  await clock.advance(GATHERED_MS);
  assert.ok((await now(next)).held);
  await clock.advance(10_000);
  await now(released);
});

test("a reader that comes after those gathered does not overtake them, nor does a cohort", async () => {
  for (const [who, options] of [
    ["reader", { waitMs: 600_000, mode: "shared" }],
    ["neighbour", { waitMs: 600_000 }],
    ["unrenewed", { ...STRICT, renew: false }],
  ] as const) {
    const { clock, locks, visit, served } = stage();
    const holder = await locks.acquire("a", STRICT);
    const visits = [visit("1", locks), visit("2", locks), visit(who, locks, options)];
    await clock.advance(0);
    await holder.release();
    await clock.advance(10);
    await now(Promise.all(visits));
    assert.deepEqual(served, ["1", "2", who]);
  }
});

test("waiters of another ttl, lock-delay or label have a place of their own, in their order", async () => {
  for (const differs of [{ ttlMs: 9_000 }, { lockDelayMs: 5 }, { label: "me" }]) {
    const { clock, locks, inLine, visit, served } = stage();
    const holder = await locks.acquire("a", STRICT);
    const odd = { ...STRICT, ...differs };
    const visits = [visit("1", locks), visit("2", locks, odd), visit("3", locks)];
    await clock.advance(GATHERED_MS);
    assert.equal(inLine("a"), 3);
    await holder.release();
    await clock.advance(10);
    await now(Promise.all(visits));
    assert.deepEqual(served, ["1", "2", "3"]);
  }
});

test("a member that gives up is left out; when all have, nothing is left", async () => {
  for (const whenMs of [0, GATHERED_MS]) {
    const { clock, locks, inLine, held, visit, served } = stage();
    const holder = await locks.acquire("a", STRICT);
    const [one, all] = [new AbortController(), new AbortController()];
    const leaving = outcomeOf(locks.acquire("a", { ...STRICT, signal: one.signal }));
    const staying = visit("staying", locks, { ...STRICT, signal: all.signal });
    await clock.advance(whenMs);
    one.abort(new Error("enough"));
    assert.equal(((await leaving) as Error).message, "enough");
    await clock.advance(GATHERED_MS);
    await holder.release();
    await now(staying);
    assert.deepEqual(served, ["staying"]);

    const second = await locks.acquire("a", STRICT);
    const waits = [1, 2].map(() =>
      outcomeOf(locks.acquire("a", { ...STRICT, signal: all.signal })),
    );
    await clock.advance(whenMs);
    all.abort(new Error("all"));
    for (const wait of waits) assert.equal(((await wait) as Error).message, "all");
    await clock.advance(GATHERED_MS);
    assert.equal(inLine("a"), 0);
    await second.release();
    await clock.advance(0);
    assert.equal(held("a"), 0);
    assert.equal(clock.timers, 0);
  }
});

test("when a party's grant is lost, those who had no turn claim anew, and the holder is told", async () => {
  const { clock, locks, other, visit, served } = stage();
  const opener = await locks.acquire("a", STRICT);
  const holding = locks.acquire("a", STRICT);
  const waiting = visit("2", locks);
  await clock.advance(GATHERED_MS);
  await opener.release();
  const lease = await now(holding);
  const theirs = visit("theirs", other);
  await clock.advance(0);
  await other.revoke("a", { token: lease.token, force: true });
  await clock.advance(20_000);
  await now(Promise.all([waiting, theirs]));
  assert.equal(lease.held, false);
  assert.ok(lease.signal.reason instanceof LeaseLostError);
  assert.deepEqual(served, ["theirs", "2"], "it had lost its place with the grant");
});

test("a holder that is lost lets those gathered go on, and nobody after it is held back", async () => {
  const { clock, engine, locks, other } = stage();
  const holder = await locks.acquire("a", STRICT);
  const next = locks.acquire("a", STRICT);
  await other.revoke("a", { token: holder.token, force: true });
  await clock.advance(20_000);
  assert.equal(holder.held, false);
  const lease = await now(next);
  assert.ok(lease.held);
  await lease.release();
  const before = engine.calls("enqueue");
  void locks.acquire("a", STRICT);
  assert.equal(engine.calls("enqueue"), before + 1);
});

test("a party is as large as the range of tokens that the engine can reserve", async () => {
  const clock = new ManualClock();
  const inner = memoryEngine();
  const engine = altered(inner, { traits: { ...inner.traits, tokenRange: 2 } });
  const locks = new Locks(engine, { clock });
  const holder = await locks.acquire("a", STRICT);
  const waits = Array.from({ length: 5 }, () => locks.acquire("a", STRICT));
  await clock.advance(GATHERED_MS);
  assert.equal((await locks.inspect("a")).waiters.length, 3);
  await holder.release();
  for (const wait of waits) await (await now(wait)).release();
});

test("close ends those who are gathered and those who were sent, and leaves no timer", async () => {
  const { clock, locks, inLine } = stage();
  await locks.acquire("a", STRICT);
  const sent = outcomeOf(locks.acquire("a", STRICT));
  await clock.advance(GATHERED_MS);
  const gathered = outcomeOf(locks.acquire("a", STRICT));
  await now(locks.close());
  for (const wait of [sent, gathered]) assert.match(String(await wait), /were closed/);
  assert.equal(inLine("a"), 0);
  assert.equal(clock.timers, 0);
});
