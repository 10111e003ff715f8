import assert from "node:assert/strict";
import { test } from "node:test";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { MemoryStore, memoryEngine } from "../../index.js";

test("closing an engine removes its waiters from the queue, and no others", async () => {
  const store = new MemoryStore();
  const [holder, closing, other] = [0, 1, 2].map(() => memoryEngine({ store }));
  const held = claim("a");
  await holder!.tryAcquire(held, now());
  await closing!.queue!.enqueue(claim("a"), now());
  const next = claim("a");
  await other!.queue!.enqueue(next, now());
  await closing!.close();
  assert.equal((await other!.inspect("a", now())).waiters.length, 1);
  await holder!.release([{ ...held, tombstoneMs: 0 }], now());
  const [answer] = await other!.queue!.heartbeat([next], now());
  assert.equal(answer!.kind, "granted");
});
