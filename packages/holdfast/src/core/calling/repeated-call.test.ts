import assert from "node:assert/strict";
import { test } from "node:test";
import type { Released } from "../../engine.js";
import { memoryEngine } from "../../engines/memory/index.js";
import { ContractError, EngineError, UsageError } from "../../errors.js";
import { ManualClock } from "../../testing/index.js";
import { outcomeOf } from "../test/set-up.fixture.js";
import { Caller } from "./call.js";
import { callRepeatedly } from "./repeated-call.js";

const RELEASED: Released = { kind: "released" };

function setUp() {
  const clock = new ManualClock();
  return { clock, caller: new Caller(memoryEngine(), clock) };
}

function refusal(effect: "none" | "unknown", retryable: boolean): EngineError {
  return new EngineError("refused", { effect, retryable });
}

test("a repeated call repeats what is safe, at once and after a rest, then gives up", async () => {
  for (const [error, tries] of [
    [refusal("unknown", false), 3],
    [refusal("none", true), 3],
    [refusal("none", false), 1],
    [new UsageError("own"), 1],
  ] as const) {
    const { clock, caller } = setUp();
    const at: number[] = [];
    const t0 = clock.now();
    const repeating = outcomeOf(
      callRepeatedly(caller, 1_000, async () => {
        at.push(clock.now() - t0);
        throw error;
      }).answer,
    );
    await clock.advance(5_000);
    assert.equal(await repeating, error);
    assert.deepEqual(at, [0, 0, 100].slice(0, tries));
  }
});

test("a repeated call repeats a failed entry, and returns the answer of the repeat", async () => {
  const { clock, caller } = setUp();
  const failed = { kind: "failed", effect: "unknown", error: new Error("shard down") } as const;
  let asked = 0;
  const { answer } = callRepeatedly<Released>(caller, 100, async () => [
    ++asked < 3 ? failed : RELEASED,
  ]);
  await clock.advance(1_000);
  assert.equal(await answer, RELEASED);
  assert.equal(asked, 3);
});

test("an answer of the wrong length is a ContractError", async () => {
  const { caller } = setUp();
  const { answer } = callRepeatedly(caller, 100, async () => [RELEASED, RELEASED]);
  const error = await outcomeOf(answer);
  assert.ok(error instanceof ContractError);
});
