// Listeners and retry strategies are the user's code. Whatever they do while our code calls them
// must break nothing.
import assert from "node:assert/strict";
import { test } from "node:test";
import { channels, type Events } from "../../events.js";
import { fixed } from "../acquiring/retry.js";
import { gate, outcomeOf, setUp } from "../test/set-up.fixture.js";

const ALONE = { fair: "strict" } as const;

/** Calls back for each event of this name until the test ends. */
function on<N extends "handed-over" | "released">(
  name: N,
  listener: (message: Events[N]) => void,
): Disposable {
  const hear = (message: unknown) => listener(message as Events[N]);
  channels[name].subscribe(hear);
  return { [Symbol.dispose]: () => channels[name].unsubscribe(hear) };
}

for (const waiters of [1, 2]) {
  test(`a listener that releases a lease during its hand-over never makes two holders (${waiters} wait)`, async () => {
    const { locks, other } = setUp();
    const first = await locks.acquire("a");
    const waiting = Array.from({ length: 1 + waiters }, () => locks.acquire("a"));
    await first.release();
    const former = await waiting[0]!;
    using _ = on("handed-over", ({ from }) => {
      if (from === former.token) void former.release();
    });
    assert.equal(await former.release(), "released");
    const holder = await waiting[1]!;
    assert.ok(holder.held);
    assert.equal(await other.tryAcquire("a"), null);
    const last = waiting[2] && (await Promise.race([waiting[2], Promise.resolve(null)]));
    assert.equal(last ?? null, null, "two leases on one grant");
    for (const wait of waiting.slice(1)) await (await wait).release();
  });
}

test("a released lease is not held while listeners hear of its hand-over", async () => {
  const { locks } = setUp();
  const first = await locks.acquire("a");
  const [second, third] = [locks.acquire("a"), locks.acquire("a")];
  await first.release();
  const former = await second;
  const held: boolean[] = [];
  using _ = on("handed-over", () => held.push(former.held));
  await former.release();
  assert.deepEqual(held, [false]);
  await (await third).release();
});

test("a listener that releases a lost lease again sees one released event", async () => {
  const { clock, locks } = setUp();
  const lease = await locks.acquire("a", { ttlMs: 1_000, renew: false });
  let told = 0;
  using _ = on("released", () => {
    if (++told < 10) void lease.release();
  });
  await clock.advance(1_000);
  assert.equal(await lease.release(), "gone");
  assert.equal(told, 1);
});

for (const end of ["returns", "throws", "goes on"] as const) {
  test(`a retry strategy that aborts its own acquire and ${end} ends it once`, async () => {
    const { clock, engine, locks, held } = setUp();
    for (let i = 0; i < 4; i++) {
      engine.inject("enqueue", { kind: "fail" });
      const controller = new AbortController();
      const reason = new Error("enough");
      const retry = function* (error: unknown) {
        controller.abort(reason);
        if (end === "throws") throw error;
        if (end === "goes on") yield 60_000;
      };
      const options = { ...ALONE, signal: controller.signal, retry };
      assert.equal(await outcomeOf(locks.acquire("a", options)), reason);
    }
    assert.equal(clock.timers, 0, "a timer is left");
    // close() would hang if its count were wrong.
    const { opened, open } = gate();
    engine.inject("enqueue", { kind: "lose-reply" });
    engine.inject("release", { kind: "hold-request", until: opened });
    await outcomeOf(locks.acquire("b", ALONE));
    const closed = locks.close();
    const first = await Promise.race([
      closed.then(() => "closed"),
      new Promise((go) => setImmediate(go, "not yet")),
    ]);
    assert.equal(first, "not yet");
    open();
    await closed;
    assert.equal(held("b"), 0);
  });
}

test("an occasional loss of the place in the queue uses up no retries and no waitMs", async () => {
  const { clock, store, locks, other } = setUp();
  const lease = await other.acquire("a", { ttlMs: 10_000_000, renew: false });
  const retry = fixed({ delayMs: 50, times: 1 });
  const waiting = locks.acquire("a", { ...ALONE, waitMs: 3_000_000, retry });
  for (let i = 0; i < 5; i++) {
    await clock.advance(300_000);
    const { queue } = store.resources.get("a")!;
    assert.equal(queue.length, 1, "it did not join the queue again");
    queue.leave(queue.first!.claim.grantId);
  }
  await clock.advance(300_000);
  await lease.release();
  assert.ok((await waiting).held);
});

test("a grant for an ended claim whose tombstone is over is released", async () => {
  const { clock, engine, locks, other, held } = setUp();
  const controller = new AbortController();
  const { opened, open } = gate();
  engine.inject("enqueue", { kind: "hold-request", until: opened });
  const options = { ...ALONE, signal: controller.signal, ttlMs: 600_000, callTimeoutMs: 300_000 };
  const waiting = outcomeOf(locks.acquire("a", { ...options, waitMs: 1_000_000 }));
  await clock.advance(0);
  controller.abort(new Error("enough"));
  await waiting;
  await clock.advance(130_000);
  await other.inspect("b");
  open();
  await clock.advance(0);
  await new Promise((go) => setImmediate(go));
  await clock.advance(0);
  assert.equal(held("a"), 0);
});
