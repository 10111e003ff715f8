import assert from "node:assert";
import { test } from "node:test";
import { MemoryStore, memoryEngine } from "../engines/memory/index.js";
import { EngineError } from "../errors.js";
import { now } from "../test-support/call.fixture.js";
import { claim as claimOf } from "../test-support/claim.fixture.js";
import { type FlakyEngine, flakyEngine } from "./flaky-engine.js";

const call = () => now(1_000);

const claim = () => claimOf("door");

async function holders(engine: FlakyEngine): Promise<number> {
  return (await engine.inspect("door", call())).holders.length;
}

test("without a fault a flaky engine behaves like the engine it wraps", async () => {
  const inner = memoryEngine();
  const flaky = flakyEngine(inner);
  assert.deepEqual([flaky.name, flaky.traits], [inner.name, inner.traits]);
  assert.equal((await flaky.tryAcquire(claim(), call())).kind, "granted");
  assert.equal((await flaky.queue!.enqueue(claim(), call())).kind, "queued");
  assert.deepEqual([flaky.calls("tryAcquire"), flaky.calls("enqueue")], [1, 1]);
});

test("a call that fails has no effect and says so", async () => {
  const flaky = flakyEngine(memoryEngine());
  flaky.inject("tryAcquire", { kind: "fail" }, 2);
  for (let i = 0; i < 2; i++) {
    await assert.rejects(flaky.tryAcquire(claim(), call()), { code: "ENGINE", effect: "none" });
  }
  assert.equal(await holders(flaky), 0);
  assert.equal((await flaky.tryAcquire(claim(), call())).kind, "granted", "it behaves again");
});

test("a call whose reply is lost has its effect, and fails with effect unknown", async () => {
  const flaky = flakyEngine(memoryEngine());
  flaky.inject("tryAcquire", { kind: "lose-reply" });
  await assert.rejects(flaky.tryAcquire(claim(), call()), { code: "ENGINE", effect: "unknown" });
  assert.equal(await holders(flaky), 1);
});

test("a call that hangs never settles, carried out or not", async () => {
  for (const carriedOut of [false, true]) {
    const flaky = flakyEngine(memoryEngine());
    flaky.inject("tryAcquire", { kind: "hang", carriedOut });
    let settled = false;
    void flaky.tryAcquire(claim(), call()).finally(() => {
      settled = true;
    });
    await new Promise<void>((go) => setImmediate(go));
    assert.equal(settled, false);
    assert.equal(await holders(flaky), carriedOut ? 1 : 0);
  }
});

test("a delayed request arrives late, a delayed reply is read late", async () => {
  for (const kind of ["hold-request", "hold-reply"] as const) {
    const flaky = flakyEngine(memoryEngine());
    let open = () => {};
    const until = new Promise<void>((resolve) => {
      open = resolve;
    });
    flaky.inject("tryAcquire", { kind, until });
    const answer = flaky.tryAcquire(claim(), call());
    await new Promise<void>((go) => setImmediate(go));
    assert.equal(await holders(flaky), kind === "hold-reply" ? 1 : 0);
    open();
    assert.equal((await answer).kind, "granted");
  }
});

test("a replayed call is carried out once more, and the contract makes that harmless", async () => {
  const flaky = flakyEngine(memoryEngine());
  let open = () => {};
  const until = new Promise<void>((resolve) => {
    open = resolve;
  });
  const mine = claim();
  flaky.inject("tryAcquire", { kind: "replay", until });
  assert.equal((await flaky.tryAcquire(mine, call())).kind, "granted");
  await flaky.release([{ ...mine, tombstoneMs: 10_000 }], call());
  open();
  await new Promise<void>((go) => setImmediate(go));
  assert.equal(await holders(flaky), 0, "the tombstone refuses the acquire that came late");
});

test("pushes can be dropped, delayed and delivered", async () => {
  const store = new MemoryStore();
  const [holder, flaky] = [memoryEngine({ store }), flakyEngine(memoryEngine({ store }))];
  const pushed: string[] = [];
  flaky.queue!.onGrant((ref) => pushed.push(ref.grantId));
  let open = () => {};
  const late = new Promise<void>((resolve) => {
    open = resolve;
  });
  for (const [how, count] of [
    ["drop", 0],
    ["deliver", 1],
    [late, 1],
  ] as const) {
    flaky.pushes(how);
    const [first, second] = [claim(), claim()];
    await holder.tryAcquire(first, call());
    await flaky.queue!.enqueue(second, call());
    await holder.release([{ ...first, tombstoneMs: 0 }], call());
    assert.equal(pushed.length, count);
    await flaky.release([{ ...second, tombstoneMs: 0 }], call());
  }
  open();
  await new Promise<void>((go) => setImmediate(go));
  assert.equal(pushed.length, 2);
});

test("a cut connection fails every call until it is restored", async () => {
  const flaky = flakyEngine(memoryEngine());
  const heal = flaky.cut("unknown");
  await assert.rejects(flaky.inspect("door", call()), EngineError);
  await assert.rejects(flaky.tryAcquire(claim(), call()), { effect: "unknown" });
  heal();
  assert.equal(await holders(flaky), 0);
});
