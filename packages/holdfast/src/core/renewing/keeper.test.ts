import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import type { Engine, RenewRef } from "../../engine.js";
import { EngineError, LeaseLostError } from "../../errors.js";
import { Locks } from "../../locks.js";
import { recorder } from "../../test-support/recorder.fixture.js";
import { setUp as commonSetUp, gate, recordingRenewals } from "../test/set-up.fixture.js";

const record = recorder(afterEach);

function setUp() {
  const common = commonSetUp();
  const { noted, batches } = recordingRenewals(common.engine);
  return { ...common, batches, locks: new Locks(noted, { clock: common.clock }) };
}

test("a held lease is renewed about every third of its ttl", async () => {
  const { clock, engine, locks } = setUp();
  const lease = await locks.acquire("a", { ttlMs: 3_000 });
  await clock.advance(30_000);
  assert.ok(lease.held);
  const calls = engine.calls("renew");
  assert.ok(calls >= 28 && calls <= 40, `${calls} renewals in ten ttls`);
});

test("no renewal follows a release", async () => {
  const { clock, engine, locks } = setUp();
  const lease = await locks.acquire("a", { ttlMs: 3_000 });
  await clock.advance(500);
  void lease.release();
  await clock.advance(10_000);
  assert.equal(engine.calls("renew"), 0);
  assert.equal(clock.timers, 0);
});

test("a holder gets its lease before its renewal is planned", async () => {
  const { clock, engine, locks } = setUp();
  const hold = async (forMs: number) => {
    const lease = await locks.acquire("a", { ttlMs: 3_000 });
    assert.equal(clock.timers, 0, "the renewal was planned before the holder continued");
    if (forMs > 0) await clock.advance(forMs);
    await lease.release();
    await clock.advance(0);
    assert.equal(clock.timers, 0);
  };
  // Some leases are held for a while, some are released in the same turn, and one is renewed.
  for (const forMs of [5, 0, 0, 2_000, 0]) await hold(forMs);
  assert.ok(engine.calls("renew") >= 1 && engine.calls("renew") <= 3);
});

test("a lease is planned before the turn ends, even after others were released at once", async () => {
  const { clock, engine, locks } = setUp();
  for (let i = 0; i < 3; i++) {
    await (await locks.acquire("a")).release();
    await clock.advance(0);
  }
  const lease = await locks.acquire("a", { ttlMs: 3_000 });
  await new Promise<void>((go) => process.nextTick(go));
  assert.equal(clock.timers, 1);
  await clock.advance(30_000);
  assert.ok(lease.held);
  assert.ok(engine.calls("renew") >= 28);
});

test("a lease that is handed over many times in one turn is planned once, and renewed", async () => {
  const { clock, engine, locks } = setUp();
  const waiting = Array.from({ length: 20 }, () => locks.acquire("a", { ttlMs: 3_000 }));
  for (const one of waiting.slice(0, -1)) await (await one).release();
  const last = await waiting.at(-1)!;
  await clock.advance(30_000);
  assert.ok(last.held);
  const calls = engine.calls("renew");
  assert.ok(calls >= 28 && calls <= 40, `${calls} renewals in ten ttls`);
});

test("a lease that is handed over in a later turn is renewed by its own terms", async () => {
  const { clock, locks } = setUp();
  const lost = record(clock, "lost");
  const handedOver = record(clock, "handed-over");
  // A grant that others wait for reserves tokens for them.
  const first = await locks.acquire("a", { ttlMs: 3_000 });
  const [second, third] = [{}, { maxHoldMs: 500 }].map((options) =>
    locks.acquire("a", { ttlMs: 3_000, ...options }),
  );
  await first.release();
  await clock.advance(5);
  await (await second!).release();
  await third;
  await clock.advance(600);
  assert.equal(handedOver.length, 1);
  assert.deepEqual(
    lost.map(({ at, message }) => [at, message.reason]),
    [[505, "max-hold"]],
  );
});

test("close() also releases leases acquired in the same turn", async () => {
  const { locks, other } = setUp();
  await other.acquire("a");
  await other.close();
  assert.ok((await locks.tryAcquire("a"))?.held);
});

test("a lease acquired in the same turn learns of its revocation", async () => {
  const { clock, locks, other } = setUp();
  const lease = await locks.acquire("a");
  await other.revoke("a", { token: lease.token });
  await clock.advance(0);
  assert.equal(lease.held, false);
});

test("renewals of many leases are sent together", async () => {
  const { clock, locks, batches } = setUp();
  for (let i = 0; i < 100; i++) await locks.acquire(`r${i}`, { ttlMs: 30_000 });
  await clock.advance(11_000);
  const renewed = new Set(batches.flat().map(({ resource }) => resource));
  assert.equal(renewed.size, 100);
  assert.ok(batches.length <= 5, `${batches.length} calls for 100 leases`);
});

test("a batch holds at most a thousand grants, and all are renewed", async () => {
  const { clock, locks, batches } = setUp();
  const leases = await Promise.all(
    Array.from({ length: 2_500 }, (_, i) => locks.acquire(`r${i}`, { ttlMs: 30_000 })),
  );
  await clock.advance(40_000);
  assert.ok(Math.max(...batches.map((batch) => batch.length)) <= 1_000);
  assert.ok(leases.every((lease) => lease.held));
});

test("renewals are spread by a jitter of at most a tenth", async () => {
  const at = new Set<number>();
  for (let i = 0; i < 20; i++) {
    const { clock, locks } = setUp();
    const renewals = record(clock, "renewed");
    await locks.acquire("a", { ttlMs: 30_000 });
    await clock.advance(10_001);
    const instant = renewals[0]!.at;
    assert.ok(instant >= 8_000 && instant <= 10_000, `renewed after ${instant} ms`);
    at.add(Math.round(instant));
  }
  assert.ok(at.size > 5, `only ${at.size} different instants in 20`);
});

test("a failed entry of a batch is tried again, and the others are renewed", async () => {
  const { clock, engine } = setUp();
  const failing: Engine = Object.assign(Object.create(engine) as Engine, {
    renew: async (refs: readonly RenewRef[], call: never) => {
      const answers = await engine.renew(refs, call);
      const error = new EngineError("this shard is down", { effect: "none", retryable: true });
      const failed = { kind: "failed", effect: "none", error } as const;
      return refs.map(({ resource }, i) => (resource === "bad" ? failed : answers[i]!));
    },
  });
  const locks = new Locks(failing, { clock });
  const bad = await locks.acquire("bad", { ttlMs: 3_000 });
  const good = await locks.acquire("good", { ttlMs: 3_000 });
  const events = record(clock, "renewal-failed", "in-danger", "lost");
  await clock.advance(10_000);
  assert.equal(bad.held, false);
  assert.ok(good.held);
  assert.ok(events.every(({ message }) => message.resource === "bad"));
});

test("a lease with a tiny callTimeoutMs does not cost another lease its renewal", async () => {
  const { clock, engine } = setUp();
  const slow: Engine = Object.assign(Object.create(engine) as Engine, {
    renew: async (refs: readonly RenewRef[], call: never) => {
      await new Promise<void>((go) => clock.timer(5, go, false));
      return engine.renew(refs, call);
    },
  });
  const locks = new Locks(slow, { clock });
  const hasty = await locks.acquire("hasty", { ttlMs: 3_000, callTimeoutMs: 1 });
  const calm = await locks.acquire("calm", { ttlMs: 3_000 });
  await clock.advance(10_000);
  assert.ok(calm.held, "the backend answers within 5 ms, and the lease was lost");
  assert.equal(hasty.held, false);
});

test("a renewal that hangs is given up in time for another", async () => {
  const { clock, engine, locks } = setUp();
  const lease = await locks.acquire("a", { ttlMs: 3_000, callTimeoutMs: 60_000 });
  engine.inject("renew", { kind: "hang", carriedOut: false });
  await clock.advance(10_000);
  assert.ok(lease.held);
});

test("a renewal without an answer neither extends nor ends the lease", async () => {
  const { clock, engine, locks } = setUp();
  const lease = await locks.acquire("a", { ttlMs: 3_000 });
  engine.inject("renew", { kind: "hang", carriedOut: true }, 99);
  const before = lease.remainingMs();
  await clock.advance(1_500);
  assert.ok(lease.held);
  assert.equal(lease.remainingMs(), before - 1_500);
  await clock.advance(1_500);
  assert.equal(lease.held, false);
  assert.equal(lease.signal.reason.reason, "unconfirmed");
});

test("renewal-failed, in-danger and lost are emitted in this order", async () => {
  const { clock, engine, locks } = setUp();
  const lease = await locks.acquire("a", { ttlMs: 3_000 });
  const events = record(clock, "renewal-failed", "in-danger", "lost");
  engine.cut();
  await clock.advance(5_000);
  const names = events.map(({ name }) => name);
  assert.equal(names[0], "renewal-failed");
  assert.equal(names.at(-1), "lost");
  assert.equal(names.filter((name) => name === "in-danger").length, 1);
  const danger = events.find(({ name }) => name === "in-danger")!;
  assert.ok(Number(danger.message.remainingMs) > 500, "there is time left to act on the warning");
  const lost = events.at(-1)!;
  assert.equal(lost.message.reason, "unconfirmed");
  assert.ok(lost.at <= 2_700, `signalled at ${lost.at}, a grace before validity ended`);
  assert.equal(lease.held, false);
});

test("in-danger comes before lost even if renewEveryMs leaves time for one try only", async () => {
  const { clock, engine, locks } = setUp();
  await locks.acquire("a", { ttlMs: 3_000, renewEveryMs: 2_500 });
  const events = record(clock, "in-danger", "lost");
  engine.cut();
  await clock.advance(5_000);
  assert.deepEqual(
    events.map(({ name }) => name),
    ["in-danger", "lost"],
  );
});

test("in-danger is emitted again after a renewal in between", async () => {
  const { clock, engine, locks } = setUp();
  await locks.acquire("a", { ttlMs: 3_000 });
  const events = record(clock, "in-danger");
  for (let i = 0; i < 2; i++) {
    const mend = engine.cut();
    await clock.advance(1_900);
    mend();
    await clock.advance(1_200);
  }
  assert.equal(events.length, 2);
});

test("a jump of the wall clock renews at once and ends nothing", async () => {
  const { clock, engine, locks } = setUp();
  const lease = await locks.acquire("a");
  clock.step();
  await clock.advance(1_000);
  assert.equal(engine.calls("renew"), 1);
  assert.ok(lease.held);
});

test("the first statement after a pause beyond the ttl sees the loss", async () => {
  const { clock, locks } = setUp();
  const lease = await locks.acquire("a", { ttlMs: 3_000 });
  clock.pause(3_001);
  assert.equal(lease.held, false);
  assert.throws(() => lease.assertHeld(), LeaseLostError);
  assert.equal(lease.remainingMs(), 0);
  assert.ok(lease.signal.aborted);
  assert.equal(await lease.release(), "gone");
});

test("a renewal answered after such a pause does not revive the lease", async () => {
  const { clock, engine, locks } = setUp();
  const lease = await locks.acquire("a", { ttlMs: 3_000 });
  const { opened, open } = gate();
  engine.inject("renew", { kind: "hold-reply", until: opened });
  await clock.advance(1_000);
  clock.pause(2_500);
  open();
  await clock.advance(0);
  assert.equal(lease.held, false);
  assert.equal(lease.signal.reason.reason, "unconfirmed");
});

test("a pause shorter than the validity ends nothing, and is followed by a renewal at once", async () => {
  const { clock, engine, locks } = setUp();
  const lease = await locks.acquire("a", { ttlMs: 3_000 });
  clock.pause(2_000);
  assert.ok(lease.held);
  await clock.advance(0);
  assert.equal(engine.calls("renew"), 1);
  assert.ok(lease.remainingMs() > 2_500);
});

test("maxHoldMs ends the lease, and the keeper renews no further than that", async () => {
  const { clock, engine, locks, other } = setUp();
  const lease = await locks.acquire("a", { ttlMs: 3_000, maxHoldMs: 4_000 });
  await clock.advance(3_999);
  assert.ok(lease.held);
  await clock.advance(1);
  assert.equal(lease.held, false);
  const { reason } = lease.signal;
  assert.equal(reason.reason, "max-hold");
  const renewals = engine.calls("renew");
  assert.ok(renewals <= 3);
  await clock.advance(3_000);
  assert.equal(engine.calls("renew"), renewals);
  assert.ok(await other.tryAcquire("a"), "the grant has expired by itself");
});

test("a lease that is not renewed is lost as expired at the end of its ttl", async () => {
  const { clock, engine, locks } = setUp();
  const lease = await locks.acquire("a", { ttlMs: 3_000, renew: false });
  await clock.advance(2_600);
  assert.ok(lease.held);
  await clock.advance(100);
  assert.equal(lease.signal.reason.reason, "expired");
  assert.equal(engine.calls("renew"), 0);
});

test("a lease without renewal that is revoked by force has no time left", async () => {
  const { clock, locks, other } = setUp();
  const lease = await locks.acquire("a", { ttlMs: 3_000, renew: false });
  await other.revoke("a", { token: lease.token, force: true });
  await clock.advance(10);
  assert.equal(lease.signal.reason.reason, "revoked");
  assert.equal(lease.signal.reason.remainingMs, 0);
});

test("a check of a former holder does not end the lease of its successor", async () => {
  const { clock, engine, locks, other } = setUp();
  const options = { ttlMs: 3_000, renew: false };
  const first = await locks.acquire("a", options);
  const [turn, waiting] = [1, 2].map(() => locks.acquire("a", options));
  await first.release();
  const former = await turn!;
  const answer = gate();
  engine.inject("check", { kind: "hold-reply", until: answer.opened });
  await other.revoke("a", { token: former.token });
  await former.release();
  const successor = await waiting!;
  answer.open();
  await clock.advance(10);
  assert.equal(successor.held, true);
});

/** Pushed grants are valid for this claim window only, until they are renewed. */
function pushing(ttlMs = 3_000) {
  const { clock, engine, other } = setUp();
  const queue = engine.queue!;
  const shortly: Engine = Object.assign(Object.create(engine) as Engine, {
    queue: Object.assign(Object.create(queue) as typeof queue, {
      onGrant: (listener: Parameters<typeof queue.onGrant>[0]) =>
        queue.onGrant((waiter, granted) => listener(waiter, { ...granted, ttlMs })),
    }),
  });
  return { clock, engine, other, locks: new Locks(shortly, { clock }) };
}

test("a lease that is not renewed has its whole ttl even after a wait", async () => {
  const { clock, engine, other, locks } = pushing();
  const held = await other.acquire("a");
  const waiting = locks.acquire("a", { ttlMs: 20_000, renew: false });
  await clock.advance(10);
  await held.release();
  const lease = await waiting;
  await clock.advance(20);
  assert.ok(lease.remainingMs() > 15_000, `${lease.remainingMs()} ms are left`);
  assert.equal(engine.calls("renew"), 1);
  await clock.advance(18_000);
  assert.ok(lease.held);
  await clock.advance(2_000);
  assert.equal(lease.signal.reason.reason, "expired");
  assert.equal(engine.calls("renew"), 1);
});

test("a pushed grant that is released within milliseconds costs no renewal", async () => {
  const { clock, engine, other, locks } = pushing();
  const held = await other.acquire("a");
  const waiting = locks.acquire("a");
  await clock.advance(10);
  await held.release();
  const lease = await waiting;
  await clock.advance(5);
  assert.equal(await lease.release(), "released");
  await clock.advance(1_000);
  assert.equal(engine.calls("renew"), 0);
});

test("a pushed grant with little validity left is renewed sooner", async () => {
  const { clock, engine, other, locks } = pushing(60);
  const held = await other.acquire("a");
  const waiting = locks.acquire("a");
  await clock.advance(0);
  await held.release();
  const lease = await waiting;
  await clock.advance(7);
  assert.equal(engine.calls("renew"), 1);
  assert.ok(lease.held);
});

test("a revoked holder is told at once, with the time that it has left", async () => {
  const { clock, locks, other } = setUp();
  const lease = await locks.acquire("a");
  const { signal } = lease;
  await clock.advance(100);
  assert.equal(await other.revoke("a", { token: lease.token }), "revoked");
  await clock.advance(0);
  assert.ok(signal.aborted);
  assert.equal(signal.reason.reason, "revoked");
  assert.ok(signal.reason.remainingMs > 20_000);
});

test("a revocation that is reported during a renewal is not missed", async () => {
  const { clock, engine, locks, other } = setUp();
  const lease = await locks.acquire("a", { ttlMs: 30_000 });
  const { opened, open } = gate();
  engine.inject("renew", { kind: "hold-reply", until: opened });
  await clock.advance(10_000);
  await other.revoke("a", { token: lease.token });
  open();
  await clock.advance(1_000);
  assert.equal(lease.held, false, "the renewal's answer was older than the revocation");
});

test("a grant that was replaced at the backend is lost as replaced, with no time left", async () => {
  const { clock, locks, other, store } = setUp();
  const lease = await locks.acquire("a", { ttlMs: 3_000 });
  store.resources.get("a")!.grants.clear();
  const successor = await other.acquire("a");
  await clock.advance(1_000);
  assert.equal(lease.signal.reason.reason, "replaced");
  assert.equal(lease.signal.reason.remainingMs, 0);
  assert.equal(await lease.release(), "gone");
  await clock.advance(0);
  assert.ok(successor.held);
  assert.equal(store.resources.get("a")!.grants.size, 1);
});

test("an answer with too few entries fails the whole batch, and ends no lease", async () => {
  const { clock, engine } = setUp();
  let wrong = 1;
  const short: Engine = Object.assign(Object.create(engine) as Engine, {
    renew: async (refs: readonly RenewRef[], call: never) =>
      wrong-- > 0 ? [] : engine.renew(refs, call),
  });
  const locks = new Locks(short, { clock });
  const events = record(clock, "renewal-failed");
  const lease = await locks.acquire("a", { ttlMs: 3_000 });
  await clock.advance(6_000);
  assert.equal(events.length, 1);
  assert.ok(lease.held);
});

test("each lease of a hanging batch gets its own in-danger and lost events in time", async () => {
  const { clock, engine, locks, batches } = setUp();
  const options = { ttlMs: 30_000, callTimeoutMs: 60_000 };
  await locks.acquire("patient", { ...options, graceMs: 1_000 });
  await locks.acquire("careful", { ...options, graceMs: 5_000 });
  await locks.acquire("done", { ...options, maxHoldMs: 29_500 });
  const events = record(clock, "in-danger", "lost");
  // The call must not time out first: a timeout of a third of the ttl ends before danger comes.
  engine.inject("renew", { kind: "hang", carriedOut: false }, 99);
  clock.pause(17_000);
  await clock.advance(0);
  assert.equal(batches[0]!.length, 3);
  const before = batches.length;
  await clock.advance(9_900);
  const told = events.map(
    ({ name, at, message }) => `${name} ${message.resource} ${Math.round(at)}`,
  );
  const dangers = told.filter((line) => line.startsWith("in-danger")).sort();
  assert.equal(dangers.length, 3, told.join());
  assert.ok(
    told.some((line) => /^lost careful 2(4|5)\d{3}$/.test(line)),
    told.join(),
  );
  assert.ok(batches.length <= before + 1, "no other batch came between");
  await clock.advance(5_000);
  assert.equal(events.filter(({ name }) => name === "lost").length, 3);
});

test("close releases leases that are being renewed", async () => {
  const { clock, engine, other } = setUp();
  const locks = new Locks(engine, { clock });
  await locks.acquire("a", { ttlMs: 3_000 });
  const { opened, open } = gate();
  engine.inject("renew", { kind: "hold-reply", until: opened });
  await clock.advance(1_000);
  assert.equal(engine.calls("renew"), 1);
  const closed = locks.close();
  await clock.advance(0);
  assert.ok(await other.tryAcquire("a"), "it was not released");
  open();
  await closed;
});

test("releasing all leases during a renewal leaves no timer once the renewal has ended", async () => {
  const { clock, engine, locks } = setUp();
  const leases = await Promise.all(["a", "b"].map((name) => locks.acquire(name, { ttlMs: 3_000 })));
  const { opened, open } = gate();
  engine.inject("renew", { kind: "hold-reply", until: opened });
  await clock.advance(1_000);
  for (const lease of leases) await lease.release();
  assert.equal(clock.timers, 1, "only the timer of the call itself may be left");
  open();
  await clock.advance(0);
  assert.equal(clock.timers, 0);
  await clock.advance(10_000);
  assert.equal(engine.calls("renew"), 1);
});

test("the last loss is reported while another renewal hangs, and leaves no timer", async () => {
  const { clock, engine, locks } = setUp();
  const lease = await locks.acquire("a", { ttlMs: 3_000, callTimeoutMs: 60_000 });
  engine.inject("renew", { kind: "hang", carriedOut: false }, 99);
  await clock.advance(2_000);
  assert.ok(lease.held);
  const lost = record(clock, "lost");
  await clock.advance(2_000);
  assert.equal(lost.length, 1);
  await clock.advance(2_000);
  assert.equal(clock.timers, 0);
});

test("a lease on a handed-over grant with a renewal under way is lost by its own terms", async () => {
  const { clock, engine } = setUp();
  const locks = new Locks(engine, { clock, cohort: { ms: 60_000 } });
  const options = { ttlMs: 30_000, callTimeoutMs: 60_000 };
  const before = await locks.acquire("a", options);
  const [taking, waiting] = [0, 9_000].map((graceMs) =>
    locks.acquire("a", { ...options, graceMs }),
  );
  await clock.advance(0);
  await before.release();
  const first = (await taking)!;
  const lost = record(clock, "lost");
  engine.inject("renew", { kind: "hang", carriedOut: false }, 99);
  await clock.advance(10_000);
  assert.equal(engine.calls("renew"), 1);
  await first.release();
  const second = (await waiting)!;
  assert.ok(second.remainingMs() < 11_000, "the lease did not get the former grant");
  await clock.advance(11_000);
  assert.deepEqual(
    lost.map(({ message }) => message.token),
    [second.token],
  );
});

test("leases that a listener of a loss releases are not renewed", async () => {
  const { clock, locks, batches } = setUp();
  const short = await locks.acquire("short", { ttlMs: 3_000, renew: false });
  const long = await locks.acquire("long", { ttlMs: 7_500 });
  short.signal.addEventListener("abort", () => void long.release());
  // Both are due at the same look, and the renewal was due before the loss.
  clock.pause(2_950);
  await clock.advance(0);
  assert.ok(short.signal.aborted);
  assert.deepEqual(batches, []);
});

test("a jump of the wall clock during a renewal ends nothing, and that renewal is enough", async () => {
  const { clock, engine, locks } = setUp();
  const lease = await locks.acquire("a");
  const { opened, open } = gate();
  engine.inject("renew", { kind: "hold-reply", until: opened });
  await clock.advance(10_000);
  clock.step();
  await clock.advance(2_000);
  open();
  await clock.advance(1_000);
  assert.equal(engine.calls("renew"), 1);
  assert.ok(lease.remainingMs() > 20_000);
});

test("a lease that was handed over leaves no timer when it is released", async () => {
  const { clock, locks } = setUp();
  const before = await locks.acquire("a");
  const waiting = ["first", "second"].map(() => locks.acquire("a"));
  await clock.advance(0);
  for (const lease of [before, ...waiting]) await (await lease).release();
  await clock.advance(0);
  assert.equal(clock.timers, 0);
});
