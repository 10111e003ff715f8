import assert from "node:assert/strict";
import { test } from "node:test";
import { type AcquireTimeoutError, EngineError } from "../../errors.js";
import { channels } from "../../events.js";
import { outcomeOf, setUp } from "./set-up.fixture.js";

function throughJson(value: unknown): never {
  return JSON.parse(JSON.stringify(value)) as never;
}

test("errors, views and events are written as JSON, with tokens as decimal strings", async () => {
  const { clock, locks, other } = setUp();
  const events: unknown[] = [];
  const note = (event: unknown) => events.push(throughJson(event));
  channels.acquired.subscribe(note);
  const lease = await other.acquire("a", { label: "x" });
  channels.acquired.unsubscribe(note);
  const token = String(lease.token);
  assert.equal((events[0] as { token: string }).token, token);

  const view = await locks.inspect("a");
  const { holders } = throughJson(view) as { holders: { token: string; label: string }[] };
  assert.deepEqual([holders[0]?.token, holders[0]?.label], [token, "x"]);
  for await (const each of locks.list()) {
    assert.equal((throughJson(each) as typeof view).resource, "a");
  }

  const waiting = outcomeOf(locks.acquire("a", { waitMs: 100, fair: "strict" }));
  await clock.advance(100);
  const error = (await waiting) as AcquireTimeoutError;
  const told = throughJson(error) as Record<string, unknown>;
  assert.equal(told.code, "ACQUIRE_TIMEOUT");
  assert.equal(told.message, error.message);
  assert.equal(told.resource, "a");
  assert.equal((told.holders as { token: string }[])[0]?.token, token);
});

test("an error written as JSON does not contain its cause", () => {
  const cause = new Error("from the client, with whatever it contains");
  const error = new EngineError("refused", { effect: "none", retryable: false, cause });
  const told = throughJson(error) as Record<string, unknown>;
  assert.deepEqual(told, {
    ...{ name: "EngineError", code: "ENGINE", message: "refused" },
    ...{ effect: "none", retryable: false, reason: "other" },
  });
});
