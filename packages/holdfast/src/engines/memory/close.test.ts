import assert from "node:assert/strict";
import { test } from "node:test";
import { callNow as now } from "../../call.fixture.js";
import type { Claim } from "../../engine.js";
import { mintGrantId } from "../../grant-id.js";
import { MemoryStore, memoryEngine } from "./index.js";

test("who waited for an engine that was closed leaves the line, and nobody else does", async () => {
  const store = new MemoryStore();
  const [holder, closing, other] = [0, 1, 2].map(() => memoryEngine({ store }));
  const held = claim();
  await holder!.tryAcquire(held, now());
  await closing!.queue!.enqueue(claim(), now());
  const next = claim();
  await other!.queue!.enqueue(next, now());
  await closing!.close();
  assert.equal((await other!.inspect("a", now())).waiters.length, 1);
  await holder!.release([{ ...held, tombstoneMs: 0 }], now());
  const [answer] = await other!.queue!.heartbeat([next], now());
  assert.equal(answer!.kind, "granted");
});

function claim(): Claim {
  const terms = { mode: "exclusive", limit: null, ttlMs: 10_000, lockDelayMs: 0 } as const;
  return { resource: "a", grantId: mintGrantId(), ...terms, tokens: 1, label: "" };
}
