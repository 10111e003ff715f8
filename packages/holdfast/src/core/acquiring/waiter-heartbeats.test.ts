import assert from "node:assert/strict";
import { test } from "node:test";
import type { Engine, GrantRef } from "../../engine.js";
import { MemoryStore, memoryEngine } from "../../engines/memory/index.js";
import { channels } from "../../events.js";
import { Locks } from "../../locks.js";
import { flakyEngine, ManualClock } from "../../testing/index.js";

const ALONE = { fair: "strict", waitMs: 3_600_000 } as const;

function setUp() {
  const clock = new ManualClock();
  const store = new MemoryStore();
  const engine = flakyEngine(memoryEngine({ store }));
  const batches: (readonly GrantRef[])[] = [];
  const spied: Engine = Object.assign(Object.create(engine) as Engine, {
    close: () => engine.close(),
    queue: {
      ...engine.queue!,
      heartbeat: (refs: readonly GrantRef[], call: never) => {
        batches.push(refs);
        return engine.queue!.heartbeat(refs, call);
      },
    },
  });
  const locks = new Locks(spied, { clock });
  const other = new Locks(memoryEngine({ store }), { clock });
  return { clock, store, engine, locks, other, batches };
}

test("heartbeats of many waiters are sent together, one call per interval", async () => {
  const { clock, locks, other, batches } = setUp();
  for (let i = 0; i < 200; i++) {
    await other.acquire(`r${i}`);
    void locks.acquire(`r${i}`, ALONE).catch(() => {});
  }
  await clock.advance(10_000);
  assert.ok(batches.length <= 21, `${batches.length} calls in ten seconds`);
  assert.equal(batches[0]?.length, 200);
  await locks.close();
});

test("a batch of heartbeats holds at most a thousand waiters, and none is left out", async () => {
  const { clock, locks, other, batches } = setUp();
  await other.acquire("a");
  for (let i = 0; i < 1_500; i++) {
    void locks.acquire("a", ALONE).catch(() => {});
  }
  await clock.advance(1_000);
  assert.deepEqual(
    batches.map((batch) => batch.length),
    [1_000, 500],
  );
  assert.equal(new Set(batches.flat().map(({ grantId }) => grantId)).size, 1_500);
  await locks.close();
});

test("a failed heartbeat keeps the place, and is reported as an event", async () => {
  const { clock, engine, locks, other } = setUp();
  const holder = await other.acquire("a");
  engine.pushes("drop");
  const waiting = locks.acquire("a", ALONE);
  const failures: { during: string }[] = [];
  const listener = (message: unknown) => {
    const failure = message as { during: string };
    if (failure.during === "heartbeat") failures.push(failure);
  };
  channels.failed.subscribe(listener);
  await clock.advance(500);
  const mend = engine.cut();
  await clock.advance(5_000);
  mend();
  await holder.release();
  await clock.advance(1_100);
  channels.failed.unsubscribe(listener);
  const lease = await waiting;
  assert.ok(lease.held);
  assert.equal(engine.calls("enqueue"), 1, "it had to join the queue again");
  assert.ok(failures.length >= 3 && failures.length <= 12, `${failures.length} events in 5 s`);
});

test("a waiter that the backend no longer knows joins the queue again", async () => {
  const { clock, engine, locks, other, store } = setUp();
  const holder = await other.acquire("a");
  const waiting = locks.acquire("a", ALONE);
  await clock.advance(10);
  const { queue } = store.resources.get("a")!;
  for (const { claim } of [...queue]) queue.leave(claim.grantId);
  await clock.advance(1_000);
  assert.equal(engine.calls("enqueue"), 2);
  await holder.release();
  assert.ok((await waiting).held);
});

test("one waiter's long callTimeoutMs does not delay the others' heartbeats", async () => {
  const { clock, engine, locks, other } = setUp();
  await (await locks.acquire("x", { ...ALONE, callTimeoutMs: 3_600_000 })).release();
  const holder = await other.acquire("a");
  engine.pushes("drop");
  const waiting = locks.acquire("a", { ...ALONE, callTimeoutMs: 1_000 });
  await clock.advance(100);
  engine.inject("heartbeat", { kind: "hang", carriedOut: false });
  await clock.advance(1_000);
  await holder.release();
  await clock.advance(10_000);
  let granted = false;
  void waiting.then(() => {
    granted = true;
  });
  await clock.advance(0);
  assert.ok(granted, "one heartbeat hung, and none followed within ten seconds");
});

test("one waiter's tiny callTimeoutMs does not cost the others their heartbeats", async () => {
  const { clock, engine, other } = setUp();
  const slow: Engine = Object.assign(Object.create(engine) as Engine, {
    queue: {
      ...engine.queue!,
      heartbeat: async (refs: readonly GrantRef[], call: never) => {
        await new Promise<void>((go) => clock.timer(5, go, false));
        return engine.queue!.heartbeat(refs, call);
      },
    },
  });
  const locks = new Locks(slow, { clock });
  await other.acquire("b");
  const holder = await other.acquire("a");
  engine.pushes("drop");
  void locks.acquire("b", { ...ALONE, callTimeoutMs: 1 }).catch(() => {});
  let granted = false;
  void locks.acquire("a", ALONE).then(() => {
    granted = true;
  });
  await clock.advance(500);
  await holder.release();
  await clock.advance(5_000);
  assert.ok(granted, "the backend answers within 5 ms, and the grant was never noticed");
});

test("heartbeats do not overlap while one hangs", async () => {
  const { clock, engine, locks, other } = setUp();
  await other.acquire("a");
  engine.inject("heartbeat", { kind: "hang", carriedOut: false });
  void locks.acquire("a", ALONE).catch(() => {});
  await clock.advance(1_000);
  void locks.acquire("a", ALONE).catch(() => {});
  await clock.advance(900);
  assert.equal(engine.calls("heartbeat"), 1);
  await locks.close();
});

test("a push that comes before the answer to enqueue is accepted", async () => {
  const { clock, engine, locks, other } = setUp();
  const holder = await other.acquire("a");
  engine.inject("enqueue", { kind: "hold-reply", until: new Promise(() => {}) });
  const waiting = locks.acquire("a", { ...ALONE, callTimeoutMs: 60_000 });
  await clock.advance(10);
  await holder.release();
  await clock.advance(0);
  assert.ok((await waiting).held);
});

test("the validity of a pushed grant counts from its since, not from its arrival", async () => {
  const { clock, engine, locks, other } = setUp();
  const holder = await other.acquire("a");
  let arrive = () => {};
  engine.pushes(
    new Promise<void>((go) => {
      arrive = go;
    }),
  );
  const waiting = locks.acquire("a", { ...ALONE, ttlMs: 3_000 });
  await clock.advance(100);
  await holder.release();
  await clock.advance(800);
  arrive();
  await clock.advance(0);
  const lease = await waiting;
  assert.ok(lease.remainingMs() <= 3_000 - 800 - 300, `${lease.remainingMs()} ms are claimed`);
});

test("a push for an aborted wait makes no lease, and its grant is released", async () => {
  const { clock, engine, locks, other, store } = setUp();
  const holder = await other.acquire("a");
  let arrive = () => {};
  engine.pushes(
    new Promise<void>((go) => {
      arrive = go;
    }),
  );
  const controller = new AbortController();
  const waiting = locks.acquire("a", { ...ALONE, signal: controller.signal });
  await clock.advance(100);
  await holder.release();
  controller.abort(new Error("enough"));
  arrive();
  await assert.rejects(waiting, /enough/);
  await clock.advance(0);
  assert.equal(store.resources.size, 0);
});

test("a wait without limit keeps the process alive before, during and between heartbeats", async () => {
  const { clock, engine, locks, other } = setUp();
  await other.acquire("a");
  void locks.acquire("a", { fair: "strict", waitMs: Infinity }).catch(() => {});
  for (let i = 0; i < 5; i++) {
    await clock.advance(700);
    assert.ok(clock.keepingAlive > 0);
  }
  engine.inject("heartbeat", { kind: "hang", carriedOut: false });
  await clock.advance(1_000);
  assert.ok(clock.keepingAlive > 0);
  await clock.advance(10_000);
  await locks.close();
  await clock.advance(0);
  assert.equal(clock.keepingAlive, 0);
});
