import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryEngine } from "../../engines/memory/index.js";
import { Locks } from "../../locks.js";
import { outcomeOf, setUp } from "../test/set-up.fixture.js";

const MANY = 500;

test("an engine that answers without the event loop does not block it", async () => {
  const { locks } = setUp();
  let turns = 0;
  const count = () => {
    turns++;
    next = setImmediate(count);
  };
  let next = setImmediate(count);
  for (let i = 0; i < 1_000; i++) await locks.run("a", () => {});
  clearImmediate(next);
  assert.ok(turns >= 5, `${turns} turns in 1,000 runs`);
});

test("a claim that is aborted while it waits for a turn is not sent", async () => {
  const { engine, locks } = setUp();
  const controller = new AbortController();
  const options = { fair: "strict", signal: controller.signal } as const;
  const waits = Array.from({ length: MANY }, () => outcomeOf(locks.acquire("a", options)));
  controller.abort(new Error("enough"));
  await Promise.all(waits);
  await new Promise((go) => setImmediate(go));
  await locks.close();
  assert.ok(engine.calls("enqueue") < 100, `${engine.calls("enqueue")} of ${MANY} were sent`);
});

test("claims that wait for a turn keep their order", async () => {
  const { locks } = setUp();
  const order: number[] = [];
  const all = Array.from({ length: MANY }, async (_, i) => {
    const lease = await locks.acquire("a", { fair: "strict" });
    order.push(i);
    await lease.release();
  });
  await Promise.all(all);
  assert.deepEqual(
    order,
    order.map((_, i) => i),
  );
});

// Uses the real clock: due timers run before the turn that a call waits for.
test("a call that waits for a turn times out only after it was sent", async () => {
  await using locks = new Locks(memoryEngine(), { defaults: { callTimeoutMs: 50 } });
  await new Promise((go) => setImmediate(go));
  const all = Array.from({ length: MANY }, (_, i) => outcomeOf(locks.acquire(`r${i}`)));
  const until = performance.now() + 150;
  while (performance.now() < until);
  const failed = (await Promise.all(all)).filter((one) => one instanceof Error);
  assert.deepEqual(failed, []);
});
