import assert from "node:assert/strict";
import { test } from "node:test";
import type { Call } from "../../engine.js";
import { memoryEngine } from "../../engines/memory/index.js";
import { EngineError, UsageError } from "../../errors.js";
import { ManualClock } from "../../testing/index.js";
import { outcomeOf } from "../test/set-up.fixture.js";
import { Caller, expectAnswers } from "./call.js";

function setUp() {
  const clock = new ManualClock();
  return { clock, caller: new Caller(memoryEngine(), clock) };
}

test("a call carries its start and its timeout, and leaves no timer", async () => {
  const { clock, caller } = setUp();
  let seen: Call | undefined;
  const answer = await caller.call(250, async (call) => {
    seen = call;
    return "answer";
  });
  assert.equal(answer, "answer");
  assert.deepEqual(seen, { startedAt: clock.now(), timeoutMs: 250, order: 1 });
  assert.equal(clock.timers, 0);
});

test("a call without an answer fails after its timeout, with effect unknown", async () => {
  const { clock, caller } = setUp();
  const asked = outcomeOf(caller.call(250, () => new Promise<never>(() => {})));
  await clock.advance(250);
  const error = await asked;
  assert.ok(error instanceof EngineError);
  assert.equal(error.effect, "unknown");
  assert.ok(error.retryable);
  assert.match(error.message, /memory.*250 ms/);
});

test("an answer or a failure that comes after the timeout is ignored", async () => {
  const { clock, caller } = setUp();
  for (const late of [() => "answer", () => Promise.reject(new Error("late"))]) {
    let answer = () => {};
    const gate = new Promise<void>((go) => {
      answer = go;
    });
    const asked = outcomeOf(caller.call(250, () => gate.then(late)));
    await clock.advance(250);
    answer();
    await clock.advance(0);
    assert.match(String(await asked), /did not answer/);
  }
});

test("a foreign error becomes an EngineError with effect unknown that is not retried", async () => {
  const { caller } = setUp();
  for (const thrown of [new TypeError("odd"), "a string"]) {
    const error = await outcomeOf(caller.call(10, () => Promise.reject(thrown)));
    assert.ok(error instanceof EngineError);
    assert.deepEqual([error.effect, error.retryable], ["unknown", false]);
    assert.equal(error.cause, thrown);
  }
});

test("a HoldfastError passes unchanged, thrown or rejected", async () => {
  const { clock, caller } = setUp();
  const own = new UsageError("own");
  assert.equal(await outcomeOf(caller.call(10, () => Promise.reject(own))), own);
  const thrower = () => {
    throw own;
  };
  assert.equal(await outcomeOf(caller.call(10, thrower)), own);
  assert.equal(clock.timers, 0);
});

test("only a call with keepAlive keeps the process alive", async () => {
  const { clock, caller } = setUp();
  void outcomeOf(caller.call(10, () => new Promise(() => {}), false));
  await clock.advance(0);
  assert.deepEqual([clock.timers, clock.keepingAlive], [1, 0]);
  void outcomeOf(caller.call(10, () => new Promise(() => {})));
  await clock.advance(0);
  assert.deepEqual([clock.timers, clock.keepingAlive], [2, 1]);
  await clock.advance(10);
});

test("a batch with another number of answers, or with holes, is refused", () => {
  const { caller } = setUp();
  assert.throws(() => expectAnswers(caller, 2, [1]), /memory was asked for 2 answers and gave 1/);
  assert.deepEqual(expectAnswers(caller, 1, ["x"]), ["x"]);
  const holes = new Array<number>(2);
  holes[1] = 1;
  assert.throws(() => expectAnswers(caller, 2, holes), /asked for 2 answers and gave 1/);
});

test("each answer comes with its call, also when calls overlap or answers are late", async () => {
  const { clock, caller } = setUp();
  const told: string[] = [];
  const gates: ((answer: string) => void)[] = [];
  const listener = {
    send: () => new Promise<string>((answer) => gates.push(answer)),
    answered: (answer: string, { order }: Call) => void told.push(`${answer} to ${order}`),
    failed: (_: unknown, { order }: Call) => void told.push(`none to ${order}`),
    late: (answer: string) => void told.push(`${answer}, late`),
  };
  caller.send(100, listener, true);
  caller.send(200, listener, true);
  await clock.advance(100);
  gates[1]!("yes");
  gates[0]!("granted");
  await clock.advance(0);
  assert.deepEqual(told, ["none to 1", "yes to 2", "granted, late"]);
});

test("settled() also waits for work that begins during the wait", async () => {
  const { caller } = setUp();
  const order: string[] = [];
  const step = (name: string) =>
    new Promise<void>((go) =>
      setImmediate(() => {
        order.push(name);
        if (name === "first") caller.runInBackground("test", "a", step("second"));
        go();
      }),
    );
  caller.runInBackground("test", "a", step("first"));
  caller.runInBackground("test", "a", Promise.reject(new Error("not heard of again")));
  await caller.settled();
  assert.deepEqual(order, ["first", "second"]);
});
