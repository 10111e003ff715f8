import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import type { Engine, RenewRef } from "../../engine.js";
import { EngineError } from "../../errors.js";
import { channels } from "../../events.js";
import { Locks } from "../../locks.js";
import type { AcquireOptions } from "../../options.js";
import { recorder } from "../../test-support/recorder.fixture.js";
import { randomOf, withSeededRandom } from "../../test-support/seeded-random.fixture.js";
import { ManualClock } from "../../testing/index.js";
import type { Lease } from "../holding/lease.js";
import { gate, outcomeOf, recordingRenewals, setUp } from "../test/set-up.fixture.js";

// Leases that were renewed together are one renewal group from then on. These tests bring several
// leases into one group by a renewal, and then something happens to one of them.

const record = recorder(afterEach);
const TTL_MS = 3_000;

/** Leases that were renewed together, and every batch of renewals since then. */
async function renewedTogether(names: readonly string[], options: AcquireOptions = {}) {
  const common = setUp();
  const { clock, engine } = common;
  const { noted, batches } = recordingRenewals(engine);
  const { ttlMs = TTL_MS } = options;
  const locks = new Locks(noted, {
    ...{ clock, cohort: { ms: 60_000 }, defaults: { ...options, ttlMs } },
  });
  const leases: Lease[] = [];
  for (const name of names) leases.push(await locks.acquire(name));
  await clock.advance(ttlMs * 0.37);
  assert.deepEqual(resources(batches), [[...names].sort()], "they were not renewed together, once");
  batches.length = 0;
  return { ...common, locks, leases, batches };
}

/** Makes the keeper look in the middle of a turn, which its timer never does. */
class LookingClock extends ManualClock {
  look = () => {};

  override timer(delayMs: number, callback: () => void, keepAlive: boolean) {
    if (!keepAlive) this.look = callback;
    return super.timer(delayMs, callback, keepAlive);
  }
}

function resources(batches: readonly (readonly RenewRef[])[]): string[][] {
  return batches.map((batch) => batch.map(({ resource }) => resource).sort());
}

test("leases that were renewed together are renewed together again, with the same list", async () => {
  const { clock, batches, leases } = await renewedTogether(["a", "b", "c"]);
  await clock.advance(4 * TTL_MS);
  assert.ok(batches.length >= 10 && batches.length <= 16, `${batches.length} in four ttls`);
  assert.equal(new Set(batches).size, 1);
  assert.ok(leases.every(({ held }) => held));
});

test("a later lease on equal terms joins the group once it was renewed with the others", async () => {
  const { clock, locks, batches, leases } = await renewedTogether(["a", "b"]);
  leases.push(await locks.acquire("c", { graceMs: 300 }));
  leases.push(await locks.acquire("careful", { graceMs: 301 }));
  // The clock step renews all of them at once.
  clock.step();
  await clock.advance(1_000);
  batches.length = 0;
  await clock.advance(10 * TTL_MS);
  assert.ok(resources(batches).every((names) => names.includes("a") === names.includes("c")));
  assert.ok(leases.every(({ held }) => held));
});

test("of two leases renewed together, the release of one does not affect the other", async () => {
  for (const at of [0, 1]) {
    const { clock, batches, leases } = await renewedTogether(["a", "b"]);
    await leases[at]!.release();
    await clock.advance(4 * TTL_MS);
    const other = leases[1 - at]!;
    assert.ok(other.held);
    assert.deepEqual(new Set(resources(batches).flat()), new Set([other.resource]));
  }
});

test("when all leases of a group are released, nothing is renewed and no timer is left", async () => {
  const { clock, batches, leases } = await renewedTogether(["a", "b", "c"]);
  for (const lease of leases) await lease.release();
  await clock.advance(4 * TTL_MS);
  assert.deepEqual(batches, []);
  assert.equal(clock.timers, 0);
});

test("close() releases each lease of a group once", async () => {
  const { clock, engine, locks, held } = await renewedTogether(["a", "b", "c"]);
  // Two groups become one, and one lease is left over.
  await locks.acquire("d");
  await locks.acquire("e");
  await locks.acquire("f", { maxHoldMs: 60_000 });
  clock.step();
  await clock.advance(1_000);
  const before = engine.calls("release");
  await locks.close();
  assert.equal(engine.calls("release") - before, 6);
  assert.deepEqual(["a", "b", "c", "d", "e", "f"].map(held), [0, 0, 0, 0, 0, 0]);
  assert.equal(clock.timers, 0);
});

test("when all leases are released during their renewal, no timer is left", async () => {
  const { clock, engine, batches, leases } = await renewedTogether(["a", "b", "c"]);
  const { opened, open } = gate();
  engine.inject("renew", { kind: "hold-reply", until: opened });
  await clock.advance(1_000);
  assert.equal(batches.length, 1);
  const told = record(clock, "renewed");
  for (const lease of leases) await lease.release();
  open();
  await clock.advance(4 * TTL_MS);
  assert.equal(batches.length, 1);
  assert.deepEqual(told, []);
  assert.equal(clock.timers, 0);
});

test("of leases renewed together, only the one that is gone at the backend is lost", async () => {
  for (const gone of ["a", "b", "c"]) {
    const { clock, store, leases } = await renewedTogether(["a", "b", "c"]);
    store.resources.get(gone)!.grants.clear();
    await clock.advance(4 * TTL_MS);
    assert.deepEqual(
      leases.filter(({ held }) => !held).map(({ resource }) => resource),
      [gone],
    );
  }
});

test("when the backend has forgotten a whole group, each lease is lost", async () => {
  const { clock, engine } = setUp();
  let forgotten = false;
  const gone = { kind: "gone", why: "unknown" } as const;
  const forgetful: Engine = Object.assign(Object.create(engine) as Engine, {
    renew: async (refs: readonly RenewRef[], call: never) =>
      forgotten ? refs.map(() => gone) : engine.renew(refs, call),
  });
  const locks = new Locks(forgetful, { clock, defaults: { ttlMs: TTL_MS } });
  for (const name of ["a", "b", "c"]) await locks.acquire(name);
  await clock.advance(1_100);
  const lost = record(clock, "lost");
  forgotten = true;
  await clock.advance(1_000);
  assert.deepEqual(lost.map(({ message }) => message.resource).sort(), ["a", "b", "c"]);
  assert.equal(clock.timers, 0);
});

test("of leases renewed together, the one that is revoked is lost at once", async () => {
  const { clock, other, leases } = await renewedTogether(["a", "b", "c"]);
  await other.revoke("b", { token: leases[1]!.token });
  await clock.advance(0);
  assert.deepEqual(
    leases.map(({ held }) => held),
    [true, false, true],
  );
});

test("a revocation during a group's renewal is not missed, and concerns no other lease", async () => {
  const { clock, engine, other, leases } = await renewedTogether(["a", "b", "c"]);
  const { opened, open } = gate();
  engine.inject("renew", { kind: "hold-reply", until: opened });
  await clock.advance(1_000);
  await other.revoke("c", { token: leases[2]!.token });
  open();
  await clock.advance(10);
  assert.deepEqual(
    leases.map(({ held }) => held),
    [true, true, false],
  );
});

test("a renewal by hand with another ttl changes that lease only", async () => {
  for (const [ttlMs, held] of [
    [500, [true, false]],
    [60_000, [false, true]],
  ] as const) {
    const { clock, engine, leases } = await renewedTogether(["a", "b"]);
    await leases[1]!.renew({ ttlMs });
    engine.cut();
    await clock.advance(ttlMs === 500 ? 600 : TTL_MS);
    assert.deepEqual(
      leases.map((lease) => lease.held),
      held,
    );
  }
});

test("a renewal by hand waits for the group's renewal under way, and both count", async () => {
  for (const at of [0, 1]) {
    const { clock, engine, batches, leases } = await renewedTogether(["a", "b"]);
    const { opened, open } = gate();
    engine.inject("renew", { kind: "hold-reply", until: opened });
    await clock.advance(1_000);
    const renewed = outcomeOf(leases[at]!.renew({ ttlMs: 20_000 }));
    await clock.advance(10);
    assert.equal(batches.length, 1, "the first one has no answer yet");
    open();
    await clock.advance(10);
    assert.equal(await renewed, undefined);
    assert.deepEqual(resources(batches.slice(0, 2)), [["a", "b"], [leases[at]!.resource]]);
    assert.ok(leases[at]!.remainingMs() > 15_000);
    const leftMs = leases[1 - at]!.remainingMs();
    assert.ok(leftMs < TTL_MS && leftMs > 1_500);
  }
});

test("a renewal that was never answered does not shorten later ones", async () => {
  const { clock, engine, leases, store } = await renewedTogether(["a", "b"]);
  const { opened, open } = gate();
  engine.inject("renew", { kind: "hold-request", until: opened });
  await clock.advance(1_000);
  for (const lease of leases) {
    const renewed = outcomeOf(lease.renew({ ttlMs: 60_000 }));
    // The renewal under way is awaited until its timeout.
    await clock.advance(TTL_MS / 3);
    assert.equal(await renewed, undefined);
    assert.ok(lease.remainingMs() > 50_000, `${lease.remainingMs()} ms are left`);
  }
  // The first renewal arrives now, with its shorter ttl: it is too late to count.
  open();
  await clock.advance(10);
  for (const name of ["a", "b"]) {
    const [grant] = [...store.resources.get(name)!.grants.values()];
    assert.equal(grant!.ttlMs, 60_000);
  }
});

test("each lease of a group gets in-danger and lost in time, and one that has left gets nothing", async () => {
  const { clock, engine, leases } = await renewedTogether(["a", "b", "c"]);
  const since = clock.now();
  const events = record(clock, "in-danger", "lost");
  engine.cut();
  void outcomeOf(leases[0]!.release());
  await clock.advance(2 * TTL_MS);
  const told = events.map(({ name, message }) => `${name} ${message.resource}`);
  assert.deepEqual(told.slice(0, 2).sort(), ["in-danger b", "in-danger c"]);
  assert.deepEqual(told.slice(2).sort(), ["lost b", "lost c"]);
  assert.ok(events.every(({ at }) => at + since <= since + TTL_MS - 300));
  assert.equal(clock.timers, 0);
});

test("a lease that a listener of in-danger releases gets no in-danger event", async () => {
  const { clock, engine, leases } = await renewedTogether(["a", "b", "c"]);
  const releaseOthers = ({ resource }: { resource?: unknown }) => {
    for (const lease of leases) if (lease.resource !== resource) void outcomeOf(lease.release());
  };
  const told = record(clock, "in-danger");
  const listener = (message: unknown) => releaseOthers(message as { resource: string });
  channels["in-danger"].subscribe(listener);
  try {
    engine.cut();
    await clock.advance(2 * TTL_MS);
  } finally {
    channels["in-danger"].unsubscribe(listener);
  }
  assert.equal(told.length, 1);
});

test("the next lease on a grant in danger gets its own in-danger event", async () => {
  const { clock, engine, locks } = setUp({ cohort: { ms: 60_000 } });
  const waits = [0, 1, 2].map(() => locks.acquire("a", { ttlMs: 30_000 }));
  await (await waits[0]!).release();
  const holder = await waits[1]!;
  const told = record(clock, "in-danger");
  engine.cut();
  await clock.advance(18_750);
  await holder.release();
  const successor = await waits[2]!;
  await clock.advance(100);
  assert.deepEqual(
    told.map(({ message }) => message.token),
    [holder.token, successor.token],
  );
});

test("a failed renewal is reported to each lease of a group, and repeated for all at once", async () => {
  const { clock, engine, batches, leases } = await renewedTogether(["a", "b", "c"]);
  const events = record(clock, "renewal-failed", "renewed");
  engine.inject("renew", { kind: "fail" }, 2);
  await clock.advance(1_100);
  const told = events.map(({ name, message }) => `${name} ${message.resource}`).slice(0, 9);
  const each = (name: string) => ["a", "b", "c"].map((one) => `${name} ${one}`);
  const failures = each("renewal-failed");
  assert.deepEqual(told.slice(0, 3).sort(), failures);
  assert.deepEqual(told.slice(3, 6).sort(), failures);
  assert.deepEqual(told.slice(6).sort(), each("renewed"));
  assert.equal(batches.length, 3);
  assert.ok(leases.every(({ held }) => held));
});

test("a listener of a loss that releases or hands over other leases leaves them consistent", async () => {
  // The order in which the leases were planned is random.
  for (let round = 0; round < 8; round++) {
    const { clock, store, locks, leases, batches } = await renewedTogether(["a", "b", "c"]);
    const [a, b, c] = leases as [Lease, Lease, Lease];
    // A claim made while others wait reserves tokens for them.
    const waits = [0, 1, 2].map(() => locks.acquire("d"));
    await (await waits[0]!).release();
    const d = await waits[1]!;
    clock.step();
    await clock.advance(1_000);
    assert.deepEqual(resources(batches.splice(0)).at(-1), ["a", "b", "c", "d"]);
    // The backend has lost a and b: their losses are reported one after the other.
    for (const name of ["a", "b"]) store.resources.get(name)!.grants.clear();
    a.signal.addEventListener("abort", () => {
      for (const lease of [b, c, d]) void lease.release();
    });
    await clock.advance(1_000);
    assert.ok(a.signal.aborted);
    const successor = await waits[2]!;
    assert.equal(successor.token, d.token + 1n, "it was not handed over");
    assert.equal(batches.length, 1, "the lease to hand over was not renewed with the others");
    batches.length = 0;
    await clock.advance(3 * TTL_MS);
    assert.ok(successor.held);
    assert.deepEqual(new Set(resources(batches).flat()), new Set(["d"]));
    await successor.release();
    assert.equal(clock.timers, 0);
  }
});

test("a lease handed over during its group's renewal is lost by its own terms, the others by theirs", async () => {
  // The order in which the two were planned is random.
  for (let round = 0; round < 6; round++) {
    const { clock, engine, locks } = setUp({ cohort: { ms: 60_000 } });
    const options = { ttlMs: 30_000, callTimeoutMs: 60_000 };
    const first = await locks.acquire("a", options);
    // A claim made while others wait reserves tokens for them.
    const waits = [0, 9_000].map((graceMs) => locks.acquire("a", { ...options, graceMs }));
    await clock.advance(0);
    await first.release();
    const holder = await waits[0]!;
    const patient = await locks.acquire("b", { ...options, graceMs: 0 });
    await clock.advance(10_001);
    assert.equal(engine.calls("renew"), 1);
    engine.inject("renew", { kind: "hang", carriedOut: false }, 99);
    await clock.advance(10_001);
    assert.ok(engine.calls("renew") >= 2);
    await holder.release();
    const successor = await waits[1]!;
    assert.equal(successor.token, holder.token + 1n, "it was not handed over");
    const left = [successor.remainingMs(), patient.remainingMs()] as const;
    assert.ok(left[0] < left[1] - 8_900, left.join());
    const lost = record(clock, "lost");
    await clock.advance(2 * left[1]);
    assert.deepEqual(
      lost.map(({ at, message }) => [message.resource, Math.round(at)]),
      [
        ["a", Math.round(left[0])],
        ["b", Math.round(left[1])],
      ],
    );
  }
});

test("many renewals by hand and a close() in the same turn leave nothing behind", async () => {
  const names = Array.from({ length: 100 }, (_, i) => `r${i}`);
  const { clock, locks, leases, held } = await renewedTogether(names);
  // More calls than an in-process engine gets in one turn: the rest is sent in the next one.
  for (const lease of leases) void outcomeOf(lease.renew());
  const closed = locks.close();
  await clock.advance(100);
  await closed;
  assert.deepEqual(names.filter(held), []);
  assert.equal(clock.timers, 0);
});

test("a gone grant is lost also for the lease it is handed to before its holder is told", async () => {
  const { clock, engine, store, locks } = await renewedTogether(["a", "b"]);
  const waits = [0, 1, 2].map(() => locks.acquire("d"));
  await (await waits[0]!).release();
  const holder = await waits[1]!;
  const others = [];
  for (const name of ["u", "v", "w", "x", "y", "z"]) others.push(await locks.acquire(name));
  clock.step();
  await clock.advance(1_000);
  for (const name of ["d", "u", "v", "w", "x", "y", "z"]) store.resources.get(name)!.grants.clear();
  for (const { signal } of others) {
    signal.addEventListener("abort", () => {
      engine.inject("renew", { kind: "hang", carriedOut: false }, 9);
      void holder.release();
    });
  }
  await clock.advance(1_000);
  const successor = await waits[2]!;
  // If the holder was told first, its successor has a grant of its own.
  assert.equal(successor.held, successor.token !== holder.token + 1n);
});

test("a lease that a listener of a loss renews by hand is sent once", async () => {
  const { clock, engine } = setUp();
  const { noted, batches } = recordingRenewals(engine);
  const locks = new Locks(noted, { clock });
  const short = await locks.acquire("short", { ttlMs: 3_000, renew: false });
  const long = await locks.acquire("long", { ttlMs: 7_500 });
  const renewed: Promise<unknown>[] = [];
  short.signal.addEventListener("abort", () => {
    renewed.push(outcomeOf(long.renew({ ttlMs: 60_000 })));
  });
  // Both are due at the same look, and the renewal was due before the loss.
  clock.pause(2_950);
  await clock.advance(0);
  assert.deepEqual(
    batches.map((batch) => batch.map(({ resource, ttlMs }) => [resource, ttlMs])),
    [[["long", 60_000]]],
  );
  assert.deepEqual(await Promise.all(renewed), [undefined]);
  assert.ok(long.remainingMs() > 50_000);
});

test("a lease that is handed over while its renewal waits for a turn is not sent twice", async () => {
  const clock = new LookingClock();
  const { engine } = setUp({}, clock);
  const { noted, batches } = recordingRenewals(engine);
  const locks = new Locks(noted, { clock, cohort: { ms: 60_000 } });
  const waits = [0, 1, 2].map(() => locks.acquire("g"));
  await (await waits[0]!).release();
  const holder = await waits[1]!;
  const brief = [];
  for (const name of ["a", "b", "c", "d", "e", "f"]) {
    brief.push(await locks.acquire(name, { ttlMs: 3_000, renew: false }));
  }
  for (const { signal } of brief) signal.addEventListener("abort", () => void holder.release());
  await clock.advance(0);
  clock.pause(brief[0]!.remainingMs());
  clock.step();
  clock.look();
  await clock.advance(0);
  const successor = await waits[2]!;
  for (const names of resources(batches)) assert.equal(new Set(names).size, names.length);
  assert.equal(await successor.release(), "released");
  assert.equal(successor.held, false);
  assert.equal(clock.timers, 0);
});

test("a lease that a listener of in-danger renews by hand gets its own in-danger event", async () => {
  const { clock, engine, leases } = await renewedTogether(["a", "b", "c"]);
  const told = record(clock, "in-danger");
  const listener = () => {
    for (const lease of leases) void outcomeOf(lease.renew());
  };
  channels["in-danger"].subscribe(listener);
  try {
    engine.cut();
    await clock.advance(2_000);
  } finally {
    channels["in-danger"].unsubscribe(listener);
  }
  assert.deepEqual(told.map(({ message }) => message.resource).sort(), ["a", "b", "c"]);
});

test("a lease that a listener of renewed releases gets no renewed event", async () => {
  const { clock, leases } = await renewedTogether(["a", "b", "c"]);
  const told = record(clock, "renewed");
  const listener = (message: unknown) => {
    const { resource } = message as { resource: string };
    for (const lease of leases) if (lease.resource !== resource) void lease.release();
  };
  channels.renewed.subscribe(listener);
  try {
    await clock.advance(1_000);
  } finally {
    channels.renewed.unsubscribe(listener);
  }
  assert.equal(told.length, 1);
});

test("a loss does not make another lease's renewal earlier", async () => {
  const { clock, engine, locks } = setUp();
  // The loss comes after 2,670 ms; the renewal is due between 2,673 and 2,970.
  await locks.acquire("brief", { ttlMs: 3_000 });
  await locks.acquire("long", { ttlMs: 8_910 });
  const lost = record(clock, "lost");
  await clock.advance(0);
  clock.pause(2_671);
  await clock.advance(0);
  assert.equal(lost.length, 1);
  assert.equal(engine.calls("renew"), 0);
});

test("leases whose renewals fail for the same reason stay in one group", async () => {
  const { clock, engine } = setUp();
  const { noted, batches } = recordingRenewals(engine);
  const error = new EngineError("the connection was lost", { effect: "none", retryable: true });
  let failures = 0;
  const failing: Engine = Object.assign(Object.create(noted) as Engine, {
    renew: async (refs: readonly RenewRef[], call: never) => {
      const answers = await noted.renew(refs, call);
      if (failures-- <= 0) return answers;
      return refs.map(() => ({ kind: "failed", effect: "none", error }) as const);
    },
  });
  const locks = new Locks(failing, { clock, defaults: { ttlMs: TTL_MS } });
  for (const name of ["a", "b", "c"]) await locks.acquire(name);
  await clock.advance(2_100);
  batches.length = 0;
  failures = 2;
  await clock.advance(1_000);
  assert.ok(batches.length >= 3);
  assert.equal(new Set(batches).size, 1);
});

test("two thousand and more leases are spread by jitter after the first renewal", async () => {
  const { clock, engine, locks } = setUp();
  for (let i = 0; i < 4_000; i++) await locks.acquire(`r${i}`, { ttlMs: 30_000 });
  await clock.advance(11_000);
  const sentAt = new Set<number>();
  const renewals = record(clock, "renewed");
  await clock.advance(20_000);
  for (const { at, message } of renewals) sentAt.add(Math.round(at - Number(message.tookMs)));
  assert.ok(sentAt.size >= 3, `at ${[...sentAt]} only`);
  assert.ok(engine.calls("renew") <= 16);
});

test("a pause beyond the ttl ends all leases of a group, and a late answer revives none", async () => {
  const { clock, engine, leases } = await renewedTogether(["a", "b", "c"]);
  const { opened, open } = gate();
  engine.inject("renew", { kind: "hold-reply", until: opened });
  await clock.advance(1_000);
  clock.pause(TTL_MS);
  open();
  await clock.advance(0);
  for (const lease of leases) {
    assert.equal(lease.held, false);
    assert.equal(lease.signal.reason.reason, "unconfirmed");
  }
  assert.equal(clock.timers, 0);
});

test("a jump of the wall clock renews all leases of a group at once", async () => {
  const { clock, batches } = await renewedTogether(["a", "b", "c"], { ttlMs: 30_000 });
  clock.step();
  await clock.advance(1_000);
  assert.deepEqual(resources(batches), [["a", "b", "c"]]);
});

test("a jump of the wall clock also renews a lease acquired in the same turn", async () => {
  const clock = new LookingClock();
  const { engine, locks } = setUp({}, clock);
  await locks.acquire("a");
  await clock.advance(0);
  await locks.acquire("b");
  clock.step();
  const renewed = record(clock, "renewed");
  clock.look();
  await clock.advance(0);
  assert.deepEqual(renewed.map(({ message }) => message.resource).sort(), ["a", "b"]);
  assert.equal(engine.calls("renew"), 1);
});

test("failed entries are tried again, and the others of their group are not affected", async () => {
  const common = setUp();
  const { clock, engine } = common;
  let bad = new Set<string>();
  const asked: string[][] = [];
  const failing: Engine = Object.assign(Object.create(engine) as Engine, {
    renew: async (refs: readonly RenewRef[], call: never) => {
      asked.push(refs.map(({ resource }) => resource).sort());
      const answers = await engine.renew(refs, call);
      const error = new EngineError("this shard is down", { effect: "none", retryable: true });
      const failed = { kind: "failed", effect: "none", error } as const;
      return refs.map(({ resource }, i) => (bad.has(resource) ? failed : answers[i]!));
    },
  });
  const locks = new Locks(failing, { clock, defaults: { ttlMs: TTL_MS } });
  const leases = [];
  for (const name of ["a", "b", "c", "d"]) leases.push(await locks.acquire(name));
  await clock.advance(1_100);
  const events = record(clock, "renewal-failed");
  bad = new Set(["a", "c"]);
  await clock.advance(1_300);
  assert.ok(events.length >= 4);
  assert.ok(events.every(({ message }) => bad.has(String(message.resource))));
  bad = new Set();
  clock.step();
  await clock.advance(2 * TTL_MS);
  assert.ok(leases.every(({ held }) => held));
  assert.deepEqual(asked.at(-1), ["a", "b", "c", "d"], "they are not in one batch again");
});

test("in any order of acquires and releases, no lease is lost and none is renewed after its release", async () => {
  for (let seed = 1; seed <= 20; seed++)
    await withSeededRandom(randomOf(-seed), () => comeAndGo(seed));
});

async function comeAndGo(seed: number): Promise<void> {
  const kinds: AcquireOptions[] = [{}, { ttlMs: 6_000 }, { graceMs: 100 }, { maxHoldMs: 9e6 }];
  const random = randomOf(seed);
  const { clock, engine, batches, locks } = await renewedTogether(["a", "b"]);
  const lost = record(clock, "lost");
  const held = new Map<string, Lease>();
  for (let step = 0; step < 300; step++) {
    const name = `r${random(30)}`;
    const lease = held.get(name);
    const choice = random(6);
    if (lease === undefined) held.set(name, await locks.acquire(name, kinds[random(4)]!));
    else if (choice < 2) {
      held.delete(name);
      await lease.release();
    } else if (choice === 2) {
      void outcomeOf(lease.renew({ ttlMs: [1_000, 3_000, 6_000][random(3)]! }));
    } else if (choice === 3) engine.inject("renew", { kind: random(2) ? "fail" : "lose-reply" });
    batches.length = 0;
    await clock.advance(random(300));
    for (const one of resources(batches).flat()) {
      assert.ok(held.has(one) || one === "a" || one === "b", `seed ${seed}: ${one} was renewed`);
    }
  }
  const losses = lost.map(({ message }) => message.resource);
  assert.deepEqual(losses, [], `seed ${seed}`);
  for (const lease of held.values()) assert.ok(lease.held, `seed ${seed}`);
  const closed = locks.close();
  await clock.advance(1_000);
  await closed;
  assert.equal(clock.timers, 0, `seed ${seed}`);
}
