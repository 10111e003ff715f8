// How a shared table of ShedLock's must behave, on any SQL database.
import assert from "node:assert/strict";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import type { Claim, Engine } from "../../engine.js";
import type { EngineError } from "../../errors.js";
import type { Locks } from "../../locks.js";
import { now as callNow } from "../call.fixture.js";
import { claim } from "../claim.fixture.js";
import { until } from "../until.fixture.js";

/** ShedLock's own statements with database time, on their own connections. */
export interface ShedLock {
  /** Inserts the row, or updates it if the former lock is over. Returns whether it got the lock. */
  lock(name: string, ms: number): Promise<boolean>;
  unlock(name: string): Promise<void>;
}

export interface ShedLockServer {
  readonly theirs: ShedLock;
  locks(): Locks;
  engine(): Engine;
  /** Deletes the row of this name. */
  deleteRow(name: string): Promise<unknown>;
  /** The whole row of this name, as text. */
  row(name: string): Promise<string>;
  /** Removes what is over, as every call may do as a side effect. */
  sweep(): Promise<unknown>;
}

export type ShedLockIt = (title: string, part: (server: ShedLockServer) => Promise<void>) => void;

/** What a waiter may send that was let in and does not know it yet. */
const ASKED_AGAIN: readonly [
  string,
  (engine: Engine, waits: Claim) => Promise<{ kind: string }>,
][] = [
  ["heartbeat", async (engine, waits) => (await engine.queue!.heartbeat([waits], now()))[0]!],
  ["repeated enqueue", (engine, waits) => engine.queue!.enqueue(waits, now())],
  ["repeated acquire", (engine, waits) => engine.tryAcquire(waits, now())],
  ["withdrawal", (engine, waits) => engine.queue!.withdraw(waits, now())],
];

/** Everything of a granted claim that may arrive late, when another holder has the row. */
const STRAGGLERS: readonly [string, (engine: Engine, late: Claim, token: bigint) => unknown][] = [
  ["renewal", (engine, late) => engine.renew([{ ...late, ttlMs: 60_000 }], now())],
  ["shorter renewal", (engine, late) => engine.renew([{ ...late, ttlMs: 100 }], now())],
  ["heartbeat", (engine, late) => engine.queue!.heartbeat([late], now())],
  ["acquire", (engine, late) => engine.tryAcquire(late, now())],
  ["enqueue", (engine, late) => engine.queue!.enqueue(late, now())],
  ["withdrawal", (engine, late) => engine.queue!.withdraw(late, now())],
  [
    "check",
    (engine, { resource }, token) => engine.check({ resource, token, mode: "exclusive" }, now()),
  ],
  [
    "revocation",
    (engine, { resource }, token) => engine.revoke({ resource, token, force: false }, now()),
  ],
  ["release", (engine, late) => engine.release([{ ...late, tombstoneMs: 0 }], now())],
  ["release for good", (engine, late) => engine.release([{ ...late, tombstoneMs: 9_000 }], now())],
];

/** Two calls create the schema of `engine`; `mixed` uses a schema of another kind. */
export async function expectSchemaMadeOnce(
  engine: Engine,
  makes: readonly (() => Promise<unknown>)[],
  mixed: Engine,
): Promise<void> {
  await assert.rejects(engine.tryAcquire(claim("a"), now()), (error: EngineError) => {
    return /init\(client, \{ shedlock: "shedlock" \}\)/.test(error.message);
  });
  for (const make of makes) await make();
  assert.equal((await engine.tryAcquire(claim("a"), now())).kind, "granted");
  await assert.rejects(mixed.tryAcquire(claim("a"), now()), /not made for hold: "shedlock"/);
}

export function testShedLock(it: ShedLockIt): void {
  it("ShedLock is excluded while we hold, and we are excluded while it holds", async (server) => {
    const { theirs } = server;
    const locks = server.locks();
    const lease = await locks.acquire("b", { ttlMs: 10_000 });
    assert.equal(await theirs.lock("b", 1_000), false);
    await lease.renew({ ttlMs: 20_000 });
    assert.equal(await theirs.lock("b", 1_000), false);
    await lease.release();
    assert.equal(await theirs.lock("b", 30_000), true);
    assert.equal(await locks.tryAcquire("b"), null);
    assert.equal((await locks.inspect("b")).holders[0]?.label, hostname());
    const waiting = locks.acquire("b", { waitMs: 30_000 });
    await sleep(100);
    await theirs.unlock("b");
    const next = await waiting;
    assert.ok(next.token > lease.token);
    await next.release();
    assert.equal(await theirs.lock("b", 300), true);
    const later = await locks.acquire("b", { waitMs: 30_000 });
    assert.equal(await theirs.lock("b", 1_000), false, "its time was over, and is ours now");
    await later.release();
  });

  it("our release does not free another run on the same host, as ShedLock's does", async (server) => {
    const { theirs } = server;
    // ShedLock: the first run's time is over, the second runs, and the first releases a lock that
    // is not its own.
    assert.equal(await theirs.lock("c1", 1), true);
    await sleep(20);
    assert.equal(await theirs.lock("c1", 30_000), true);
    await theirs.unlock("c1");
    assert.equal(await theirs.lock("c1", 1_000), true, "ShedLock freed another run's lock");
    // Holdfast: the same schedule.
    const [first, second] = [server.engine(), server.engine()];
    const early = claimed("c2", 100);
    await first.tryAcquire(early, now());
    await sleep(150);
    assert.equal((await second.tryAcquire(claimed("c2", 30_000), now())).kind, "granted");
    const [answer] = await first.release([{ ...early, tombstoneMs: 0 }], now());
    assert.equal(answer!.kind, "gone");
    assert.equal(await theirs.lock("c2", 1_000), false, "the second run is still protected");
  });

  it("a row that is deleted by hand costs the lease at its next renewal", async (server) => {
    const lease = await server.locks().acquire("d", { ttlMs: 600 });
    await server.deleteRow("d");
    await until("it is lost", () => !lease.held);
    assert.equal(await lease.release(), "gone");
  });

  for (const [name, ask] of ASKED_AGAIN) {
    it(`a ${name} reports no grant whose row ShedLock has taken`, async (server) => {
      const [ours, other] = [server.engine(), server.engine()];
      const resource = name.replace(" ", "-");
      const [held, waits] = [claimed(resource, 10_000), claimed(resource, 10_000)];
      await other.tryAcquire(held, now());
      await ours.queue!.enqueue(waits, now());
      await other.release([{ ...held, tombstoneMs: 0 }], now());
      await server.deleteRow(resource);
      assert.equal(await server.theirs.lock(resource, 30_000), true);
      assert.notEqual((await ask(ours, waits)).kind, "granted");
    });
  }

  it("no late call changes a row that ShedLock has taken", async (server) => {
    const [ours, other] = [server.engine(), server.engine()];
    const force = (engine: Engine, { resource }: Claim, token: bigint) =>
      engine.revoke({ resource, token, force: true }, now());
    const leave = (engine: Engine, late: Claim) =>
      engine.renew([{ ...late, ttlMs: 100, leave: true }], now());
    const all = [...STRAGGLERS, ["leaving", leave], ["forced revocation", force]] as const;
    for (const [name, send] of all) {
      const resource = `late ${name}`;
      const held = claimed(resource, 10_000);
      const granted = await ours.tryAcquire(held, now());
      assert.ok(granted.kind === "granted");
      // Another of our waiters is queued: the end of our record must not let it in beside ShedLock.
      await other.queue!.enqueue(claimed(resource, 10_000), now());
      await server.deleteRow(resource);
      assert.equal(await server.theirs.lock(resource, 30_000), true);
      const before = await server.row(resource);
      await send(ours, held, granted.token);
      await server.sweep();
      assert.equal(await server.row(resource), before, `after a ${name}`);
    }
  });

  it("no late call shortens a grant that once() has left", async (server) => {
    const [ours, other] = [server.engine(), server.engine()];
    for (const [name, send] of STRAGGLERS) {
      const resource = `left ${name}`;
      const held = claimed(resource, 10_000);
      const granted = await ours.tryAcquire(held, now());
      assert.ok(granted.kind === "granted");
      await ours.renew([{ ...held, ttlMs: 20_000, leave: true }], now());
      await other.queue!.enqueue(claimed(resource, 10_000), now());
      const before = await server.row(resource);
      await send(ours, held, granted.token);
      await server.sweep();
      assert.equal(await server.row(resource), before, `after a ${name}`);
      assert.equal(await server.theirs.lock(resource, 1_000), false);
    }
  });

  it("once runs once against ShedLock too, and keeps it out for atLeastMs", async (server) => {
    const [ours, other] = [server.locks(), server.locks()];
    const options = { atMostMs: 60_000, atLeastMs: 4_000 };
    const from = performance.now();
    assert.equal((await ours.once("e", options, () => 1)).ran, true);
    assert.equal((await other.once("e", options, () => 1)).ran, false);
    assert.equal(await server.theirs.lock("e", 5_000), false);
    await until("ShedLock runs", () => server.theirs.lock("e", 60_000));
    assert.ok(performance.now() - from >= 3_990);
    assert.equal((await ours.once("e", options, () => 1)).ran, false);
  });
}

/** Holdfast and ShedLock take turns on one name, and never overlap. */
export async function takeTurns(server: ShedLockServer, turns: number): Promise<void> {
  const locks = server.locks();
  const taken = { ours: 0, theirs: 0 };
  let inside = 0;
  const left = () => turns - taken.ours - taken.theirs;
  const turn = async (whose: keyof typeof taken) => {
    assert.equal(++inside, 1, `${whose} came in beside the other`);
    await sleep(0);
    inside--;
    taken[whose]++;
  };
  const us = async () => {
    while (left() > 0) {
      const lease = await locks.acquire("turns", { waitMs: 120_000, ttlMs: 60_000 });
      await turn("ours");
      await lease.release();
      await sleep(1);
    }
  };
  const them = async () => {
    while (left() > 0) {
      if (!(await server.theirs.lock("turns", 60_000))) {
        await sleep(1);
        continue;
      }
      await turn("theirs");
      await server.theirs.unlock("turns");
      await sleep(taken.theirs > taken.ours ? 10 : 1);
    }
  };
  await Promise.all([us(), them()]);
  assert.ok(taken.ours > turns / 20 && taken.theirs > turns / 20, JSON.stringify(taken));
}

function claimed(resource: string, ttlMs: number): Claim {
  return claim(resource, { ttlMs, label: hostname() });
}

const now = () => callNow(10_000);
