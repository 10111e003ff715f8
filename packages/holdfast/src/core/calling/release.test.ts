import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import type { Engine, Released } from "../../engine.js";
import { memoryEngine } from "../../engines/memory/index.js";
import { EngineError } from "../../errors.js";
import { channels } from "../../events.js";
import { ManualClock } from "../../testing/index.js";
import { Caller } from "./call.js";
import { abandonClaim } from "./release.js";

const cleanUps: (() => void)[] = [];
afterEach(() => {
  for (const cleanUp of cleanUps.splice(0)) cleanUp();
});

const RELEASED: Released = { kind: "released" };
const REF = { resource: "a", grantId: "0".repeat(32) };

function setUp(overrides: Partial<Engine>) {
  const engine: Engine = Object.assign(Object.create(memoryEngine()) as Engine, overrides);
  return new Caller(engine, new ManualClock());
}

test("abandonClaim leaves a tombstone only when a request may still be on its way", async () => {
  const buried: number[] = [];
  const caller = setUp({
    release: async ([ref]) => {
      buried.push(ref!.tombstoneMs);
      return [RELEASED];
    },
  });
  abandonClaim(caller, REF, false, 100);
  abandonClaim(caller, REF, true, 100);
  await caller.settled();
  assert.equal(buried[0], 0);
  assert.ok(buried[1]! >= 60_000);
});

test("abandonClaim never throws: a failure is reported as an event", async () => {
  const caller = setUp({
    release: () => Promise.reject(new EngineError("refused", { effect: "none", retryable: false })),
  });
  const told: { during: string; resource: string }[] = [];
  const listener = (m: unknown) => told.push(m as { during: string; resource: string });
  channels.failed.subscribe(listener);
  cleanUps.push(() => channels.failed.unsubscribe(listener));
  abandonClaim(caller, REF, false, 100);
  await caller.settled();
  await new Promise((go) => setImmediate(go));
  assert.deepEqual(
    told.map(({ during, resource }) => [during, resource]),
    [["clean-up", "a"]],
  );
});
