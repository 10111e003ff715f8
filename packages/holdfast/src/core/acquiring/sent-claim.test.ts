import assert from "node:assert/strict";
import { test } from "node:test";
import type { Engine, ReleaseRef } from "../../engine.js";
import { memoryEngine } from "../../engines/memory/index.js";
import { EngineError } from "../../errors.js";
import { ManualClock } from "../../testing/index.js";
import { Caller } from "../calling/call.js";
import type { ClaimRequest } from "./claim-request.js";
import { SentClaim, type StepAnswer } from "./sent-claim.js";

const BUSY = { kind: "busy", holders: [] } as const;

/** A claim whose requests are answered by the test. */
function setUp() {
  const clock = new ManualClock();
  const replies: { answer(with_: StepAnswer): void; fail(error: Error): void }[] = [];
  const released: ReleaseRef[] = [];
  const request = () =>
    new Promise<never>((resolve, reject) => {
      replies.push({ answer: (given) => resolve(given as never), fail: reject });
    });
  const overrides: Partial<Engine> = {
    traits: { ...memoryEngine().traits, remote: true },
    tryAcquire: request,
    release: async (refs) => {
      released.push(...refs);
      return refs.map(() => ({ kind: "released" as const }));
    },
  };
  const engine = Object.assign(Object.create(memoryEngine()) as Engine, overrides);
  const reports: string[] = [];
  const terms = { mode: "exclusive", limit: null, ttlMs: 1_000, lockDelayMs: 0, label: "" };
  const sent = new SentClaim(
    new Caller(engine, clock),
    { resource: "a", tokens: 1, terms: { ...terms, callTimeoutMs: 100 } } as ClaimRequest,
    {
      onAnswer: ({ kind }) => void reports.push(kind),
      onFailure: (error) => void reports.push((error as EngineError).effect),
    },
  );
  return { clock, sent, replies, released, reports };
}

test("mayArrive is true until the request is answered, and for ever once an answer was lost", async () => {
  const { clock, sent, replies } = setUp();
  assert.equal(sent.mayArrive, false);
  sent.ask("try");
  assert.ok(sent.mayArrive);
  replies[0]!.answer(BUSY);
  await clock.advance(0);
  assert.equal(sent.mayArrive, false);
  sent.ask("try");
  await clock.advance(100);
  assert.ok(sent.mayArrive, "the answer did not come in time");
  sent.ask("try");
  replies[2]!.answer(BUSY);
  await clock.advance(0);
  assert.ok(sent.mayArrive, "the lost request may still arrive");
});

test("only the last request is reported, and none after the claim is detached", async () => {
  const { clock, sent, replies, reports } = setUp();
  sent.ask("try");
  sent.ask("try");
  replies[0]!.answer({ kind: "gone", why: "expired" });
  await clock.advance(0);
  assert.deepEqual(reports, []);
  replies[1]!.answer(BUSY);
  await clock.advance(0);
  assert.deepEqual(reports, ["busy"]);
  sent.ask("try");
  sent.detach();
  replies[2]!.answer(BUSY);
  await clock.advance(0);
  assert.deepEqual(reports, ["busy"]);
});

test("a claim that is given up is released, with a tombstone while a request may arrive", async () => {
  const { clock, sent, released } = setUp();
  sent.ask("try");
  sent.giveUp();
  await clock.advance(0);
  assert.deepEqual(
    released.map(({ tombstoneMs }) => tombstoneMs > 0),
    [true],
  );
});

test("a claim of which the backend knows nothing is not released", async () => {
  const fail = new EngineError("refused", { effect: "none", retryable: true });
  for (const reply of ["busy", "fail"]) {
    const { clock, sent, replies, released, reports } = setUp();
    sent.ask("try");
    if (reply === "busy") replies[0]!.answer(BUSY);
    else replies[0]!.fail(fail);
    await clock.advance(0);
    assert.deepEqual(reports, [reply === "busy" ? "busy" : "none"]);
    sent.giveUp();
    await clock.advance(0);
    assert.deepEqual(released, []);
  }
});
