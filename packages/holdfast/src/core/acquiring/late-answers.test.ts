import assert from "node:assert/strict";
import { test } from "node:test";
import type { Engine } from "../../engine.js";
import { AcquireTimeoutError, EngineError } from "../../errors.js";
import { Locks } from "../../locks.js";
import { gate, outcomeOf, setUp } from "../test/set-up.fixture.js";
import { fixed } from "./retry.js";

// "strict" bypasses the cohort, so that these tests see one claim on its own.
const ALONE = { fair: "strict" } as const;

/** The same backend without a queue, so that core has to poll. */
function withoutQueue(engine: Engine): Engine {
  return Object.assign(Object.create(engine) as Engine, {
    queue: undefined,
    close: () => engine.close(),
  });
}

test("an enqueue that failed without effect and without a strategy fails the acquire", async () => {
  const { engine, locks, held } = setUp();
  engine.inject("enqueue", { kind: "fail" });
  const error = await outcomeOf(locks.acquire("a", ALONE));
  assert.ok(error instanceof EngineError);
  assert.equal(error.effect, "none");
  assert.equal(held("a"), 0);
  assert.equal(engine.calls("release"), 0, "there was nothing to clean up");
});

test("an enqueue whose reply was lost leaves no grant behind", async () => {
  const { clock, engine, locks, held } = setUp();
  engine.inject("enqueue", { kind: "lose-reply" });
  const error = await outcomeOf(locks.acquire("a", ALONE));
  assert.ok(error instanceof EngineError);
  assert.equal(error.effect, "unknown");
  await clock.advance(0);
  assert.equal(held("a"), 0);
});

test("an enqueue that arrives after its claim has ended is refused", async () => {
  const { clock, engine, locks, held, queued } = setUp();
  const { opened, open } = gate();
  engine.inject("enqueue", { kind: "hold-request", until: opened });
  const waiting = outcomeOf(locks.acquire("a", { ...ALONE, callTimeoutMs: 100 }));
  await clock.advance(100);
  assert.ok((await waiting) instanceof EngineError);
  open();
  await clock.advance(0);
  assert.equal(held("a") + queued("a"), 0);
});

test("a strategy repeats a lost enqueue under the same grantId and gets the same grant", async () => {
  const { clock, engine, locks, held } = setUp();
  engine.inject("enqueue", { kind: "lose-reply" });
  const waiting = locks.acquire("a", { ...ALONE, retry: fixed({ delayMs: 50 }) });
  await clock.advance(50);
  const lease = await waiting;
  assert.equal(lease.token, 1n, "a second grant was taken");
  assert.equal(held("a"), 1);
});

test("a first request that arrives after its repeat was granted and released leaves no orphan", async () => {
  const { clock, engine, locks, held, queued } = setUp();
  const { opened, open } = gate();
  engine.inject("enqueue", { kind: "hold-request", until: opened });
  const waiting = locks.acquire("a", {
    ...ALONE,
    callTimeoutMs: 100,
    retry: fixed({ delayMs: 50 }),
  });
  await clock.advance(150);
  const lease = await waiting;
  assert.equal(await lease.release(), "released");
  open();
  await clock.advance(0);
  assert.equal(held("a") + queued("a"), 0, "the late request became a grant that nobody uses");
});

test("a first request that arrives after its repeat was queued and aborted leaves no orphan", async () => {
  const { clock, engine, locks, other, queued } = setUp();
  const { opened, open } = gate();
  const controller = new AbortController();
  await other.acquire("a");
  engine.inject("enqueue", { kind: "hold-request", until: opened });
  const waiting = outcomeOf(
    locks.acquire("a", {
      ...ALONE,
      callTimeoutMs: 100,
      retry: fixed({ delayMs: 50 }),
      signal: controller.signal,
    }),
  );
  await clock.advance(150);
  assert.equal(queued("a"), 1);
  controller.abort();
  await waiting;
  open();
  await clock.advance(0);
  assert.equal(queued("a"), 0, "the late request left a waiter in the queue");
});

test("an enqueue that arrives after its withdrawal leaves no orphan", async () => {
  const { clock, engine, locks, other, held, queued } = setUp();
  const { opened, open } = gate();
  const first = await other.acquire("a");
  engine.inject("enqueue", { kind: "hold-request", until: opened });
  const waiting = outcomeOf(locks.acquire("a", { ...ALONE, waitMs: 100 }));
  await clock.advance(100);
  assert.ok((await waiting) instanceof AcquireTimeoutError);
  assert.equal(engine.calls("withdraw"), 1);
  open();
  await clock.advance(0);
  assert.equal(queued("a"), 0, "a waiter is still in the queue");
  await first.release();
  assert.equal(held("a"), 0);
});

test("a first request that arrives after its repeat lost its place leaves no orphan", async () => {
  const { clock, engine, locks, other, held, queued } = setUp();
  const { opened, open } = gate();
  const first = await other.acquire("a");
  engine.inject("enqueue", { kind: "hold-request", until: opened });
  engine.pushes("drop");
  const waiting = locks.acquire("a", {
    ...ALONE,
    ttlMs: 500,
    callTimeoutMs: 200,
    retry: fixed({ delayMs: 10 }),
  });
  await clock.advance(300);
  assert.equal(queued("a"), 1, "the repeat is not in the queue");
  await first.release();
  // Nobody learns of the grant before it ends.
  const mend = engine.cut("unknown");
  await clock.advance(900);
  mend();
  await clock.advance(2_000);
  const lease = await waiting;
  open();
  await clock.advance(0);
  assert.equal(queued("a"), 0, "the first request left a waiter");
  await lease.release();
  assert.equal(held("a") + queued("a"), 0);
});

for (const learnsBy of ["heartbeat", "enqueue", "tryAcquire"] as const) {
  test(`a claim does not wait for its own grant that was revoked before core saw it (${learnsBy})`, async () => {
    const { clock, engine, locks, other } = setUp();
    const first = await other.acquire("a");
    engine.pushes("drop");
    if (learnsBy === "enqueue") engine.inject("enqueue", { kind: "lose-reply" });
    if (learnsBy === "tryAcquire") engine.inject("tryAcquire", { kind: "lose-reply" });
    const polled = new Locks(withoutQueue(engine), { clock });
    const ours = learnsBy === "tryAcquire" ? polled : locks;
    if (learnsBy !== "heartbeat") await first.release();
    const retry = fixed({ delayMs: 200 });
    const waiting = ours.acquire("a", { ...ALONE, ttlMs: 20_000, retry });
    await clock.advance(100);
    if (learnsBy === "heartbeat") await first.release();
    const [unseen] = (await other.inspect("a")).holders;
    assert.equal(await other.revoke("a", { token: unseen!.token }), "revoked");
    await clock.advance(2_000);
    const lease = await Promise.race([waiting, Promise.resolve(null)]);
    assert.ok(lease?.held, "it waits for the end of its own grant");
    assert.ok(lease.token > unseen!.token);
  });
}

test("a claim that times out leaves no grant that was revoked before core saw it", async () => {
  const { clock, engine, locks, other, held } = setUp();
  const first = await other.acquire("a");
  engine.pushes("drop");
  const waiting = outcomeOf(locks.acquire("a", { ...ALONE, ttlMs: 20_000, waitMs: 300 }));
  await clock.advance(100);
  await first.release();
  const [unseen] = (await other.inspect("a")).holders;
  assert.equal(await other.revoke("a", { token: unseen!.token }), "revoked");
  await clock.advance(200);
  assert.ok((await waiting) instanceof AcquireTimeoutError);
  assert.equal(engine.calls("withdraw"), 1);
  await clock.advance(0);
  assert.equal(held("a"), 0, "the revoked grant keeps everybody out");
});

for (const verb of ["tryAcquire", "acquire with waitMs: 0"] as const) {
  test(`a grant whose answer takes longer than its ttl is a failure, not busy (${verb})`, async () => {
    const { clock, engine, locks, held } = setUp();
    const { opened, open } = gate();
    for (const call of ["tryAcquire", "enqueue"] as const) {
      engine.inject(call, { kind: "hold-reply", until: opened });
    }
    const options = { ttlMs: 1_000, callTimeoutMs: 5_000 };
    const asked =
      verb === "tryAcquire"
        ? locks.tryAcquire("a", options)
        : locks.acquire("a", { ...options, waitMs: 0 });
    const outcome = outcomeOf<unknown>(asked);
    await clock.advance(1_500);
    open();
    await clock.advance(0);
    const error = await outcome;
    assert.ok(error instanceof EngineError, `it is ${error}`);
    assert.equal(error.retryable, true);
    assert.match(
      error.message,
      /the grant of "a" came after 1500 ms, too late for a ttl of 1000 ms/,
    );
    await clock.advance(0);
    assert.equal(held("a"), 0);
  });
}

test("a grant that arrives too late is claimed again, and keeps its token", async () => {
  const { clock, engine, locks, held } = setUp();
  const { opened, open } = gate();
  engine.inject("enqueue", { kind: "hold-reply", until: opened });
  const waiting = locks.acquire("a", { ...ALONE, ttlMs: 1_000, callTimeoutMs: 5_000 });
  await clock.advance(950);
  open();
  await clock.advance(0);
  const lease = await waiting;
  assert.ok(lease.held);
  assert.equal(lease.token, 1n);
  assert.ok(lease.remainingMs() > 800);
  assert.equal(held("a"), 1);
  assert.equal(engine.calls("release"), 0, "a release would have cost it its place");
});

test("a grant that arrives too late twice is released, and a new claim is made", async () => {
  const { clock, engine, locks, held } = setUp();
  const [first, second] = [gate(), gate()];
  engine.inject("enqueue", { kind: "hold-reply", until: first.opened });
  engine.inject("tryAcquire", { kind: "hold-reply", until: second.opened });
  const waiting = locks.acquire("a", { ...ALONE, ttlMs: 1_000, callTimeoutMs: 5_000 });
  for (const { open } of [first, second]) {
    await clock.advance(950);
    open();
    await clock.advance(0);
  }
  const lease = await waiting;
  assert.equal(lease.token, 2n);
  assert.ok(lease.remainingMs() > 800);
  assert.equal(held("a"), 1);
  assert.equal(engine.calls("tryAcquire"), 1);
});

test("a late grant whose second answer is lost is released, and a new claim is made", async () => {
  const { clock, engine, locks, held } = setUp();
  const { opened, open } = gate();
  engine.inject("enqueue", { kind: "hold-reply", until: opened });
  engine.inject("tryAcquire", { kind: "lose-reply" });
  const waiting = locks.acquire("a", { ...ALONE, ttlMs: 1_000, callTimeoutMs: 5_000 });
  await clock.advance(950);
  open();
  await clock.advance(0);
  const lease = await waiting;
  assert.equal(lease.token, 2n);
  assert.equal(held("a"), 1);
});

test("two shared grants whose replies arrive in reverse order are both valid", async () => {
  const { clock, engine, locks } = setUp();
  const { opened, open } = gate();
  engine.inject("enqueue", { kind: "hold-reply", until: opened });
  // In one local queue the first waiter would get the first grant that arrives.
  const first = locks.acquire("a", { mode: "shared", fair: "strict" });
  const second = await locks.acquire("a", { mode: "shared", fair: "strict" });
  open();
  await clock.advance(0);
  const late = await outcomeOf(first);
  assert.ok(!(late instanceof Error), String(late));
  assert.equal(late.token, 1n);
  assert.equal(second.token, 2n);
  assert.ok(late.held && second.held);
});

test("a reply that comes after its grant expired and a successor came is no ContractError", async () => {
  const { clock, engine, locks } = setUp();
  const { opened, open } = gate();
  engine.inject("tryAcquire", { kind: "hold-reply", until: opened });
  const slow = outcomeOf(locks.tryAcquire("a", { ...ALONE, ttlMs: 1_000 }));
  await clock.advance(1_100);
  const quick = await locks.acquire("a", ALONE);
  open();
  await clock.advance(0);
  assert.ok((await slow) instanceof EngineError);
  assert.ok(quick.held);
});

test("a heartbeat that arrives after a longer renewal does not shorten the grant", async () => {
  const { clock, engine, locks, other } = setUp();
  const { opened, open } = gate();
  const holder = await other.acquire("a");
  const waiting = locks.acquire("a", { ...ALONE, ttlMs: 3_000, callTimeoutMs: 60_000 });
  engine.inject("heartbeat", { kind: "hold-request", until: opened });
  await clock.advance(1_000);
  assert.equal(engine.calls("heartbeat"), 1);
  await holder.release();
  const lease = await waiting;
  await lease.renew({ ttlMs: 60_000 });
  open();
  await clock.advance(0);
  engine.cut();
  await clock.advance(10_000);
  const successor = await other.tryAcquire("a");
  assert.ok(!(lease.held && successor?.held), "two clients hold the resource");
});

test("a renewal that arrives late does not move the expiry back", async () => {
  const { clock, engine, locks, other } = setUp();
  const { opened, open } = gate();
  const lease = await locks.acquire("a", { ...ALONE, ttlMs: 3_000, callTimeoutMs: 200 });
  engine.inject("renew", { kind: "hold-request", until: opened });
  await clock.advance(2_500);
  open();
  await clock.advance(0);
  engine.cut();
  const left = lease.remainingMs();
  assert.ok(left > 1_500, "a later renewal was confirmed");
  await clock.advance(left - 1);
  assert.ok(lease.held);
  assert.equal(await other.tryAcquire("a"), null);
});

test("a release whose answer was lost counts as a release: run returns fn's value", async () => {
  const { engine, locks, held } = setUp();
  engine.inject("release", { kind: "lose-reply" });
  assert.equal(await locks.run("a", ALONE, () => "done"), "done");
  assert.equal(held("a"), 0);
});

test("a release whose answer was lost counts as a release although a successor holds now", async () => {
  const { engine, locks, other } = setUp();
  const lease = await locks.acquire("a", ALONE);
  const next = other.acquire("a", ALONE);
  engine.inject("release", { kind: "lose-reply" });
  assert.equal(await lease.release(), "released");
  assert.ok((await next).held);
});
