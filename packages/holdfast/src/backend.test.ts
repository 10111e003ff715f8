import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { Backend, expectAnswers } from "./backend.js";
import type { Call, Claim, Engine, Released } from "./engine.js";
import { memoryEngine } from "./engines/memory/index.js";
import { ContractError, EngineError, UsageError } from "./errors.js";
import { channels } from "./events.js";
import { Doubt, Grant } from "./grant.js";
import { ManualClock } from "./testing/index.js";

const cleanUps: (() => void)[] = [];
afterEach(() => {
  for (const cleanUp of cleanUps.splice(0)) cleanUp();
});

function stage(overrides: Partial<Engine> = {}) {
  const clock = new ManualClock();
  const engine: Engine = Object.assign(Object.create(memoryEngine()) as Engine, overrides);
  return { clock, backend: new Backend(engine, clock) };
}

function outcomeOf<T>(work: Promise<T>): Promise<T | Error> {
  return work.catch((error: Error) => error);
}

const RELEASED: Released = { kind: "released" };
const REF = { resource: "a", grantId: "0".repeat(32) };

function refusal(effect: "none" | "unknown", retryable: boolean): EngineError {
  return new EngineError("refused", { effect, retryable });
}

test("a call carries the instant before it was sent and its limit, and leaves no timer", async () => {
  const { clock, backend } = stage();
  let seen: Call | undefined;
  const answer = await backend.call(250, async (call) => {
    seen = call;
    return "answer";
  });
  assert.equal(answer, "answer");
  assert.deepEqual(seen, { startedAt: clock.now(), timeoutMs: 250, order: 1 });
  assert.equal(clock.timers, 0);
});

test("a call without an answer fails after its limit, with effect unknown", async () => {
  const { clock, backend } = stage();
  const asked = outcomeOf(backend.call(250, () => new Promise<never>(() => {})));
  await clock.advance(250);
  const error = await asked;
  assert.ok(error instanceof EngineError);
  assert.equal(error.effect, "unknown");
  assert.ok(error.retryable);
  assert.match(error.message, /memory.*250 ms/);
});

test("an answer that comes after the limit is not heard, and neither is a failure", async () => {
  const { clock, backend } = stage();
  for (const late of [() => "answer", () => Promise.reject(new Error("late"))]) {
    let answer = () => {};
    const gate = new Promise<void>((go) => {
      answer = go;
    });
    const asked = outcomeOf(backend.call(250, () => gate.then(late)));
    await clock.advance(250);
    answer();
    await clock.advance(0);
    assert.match(String(await asked), /did not answer/);
  }
});

test("an error that is not ours becomes an EngineError of unknown effect that is not retried", async () => {
  const { backend } = stage();
  for (const thrown of [new TypeError("odd"), "a string"]) {
    const error = await outcomeOf(backend.call(10, () => Promise.reject(thrown)));
    assert.ok(error instanceof EngineError);
    assert.deepEqual([error.effect, error.retryable], ["unknown", false]);
    assert.equal(error.cause, thrown);
  }
});

test("an error of ours passes as it is, thrown or rejected", async () => {
  const { clock, backend } = stage();
  const own = new UsageError("own");
  assert.equal(await outcomeOf(backend.call(10, () => Promise.reject(own))), own);
  const thrower = () => {
    throw own;
  };
  assert.equal(await outcomeOf(backend.call(10, thrower)), own);
  assert.equal(clock.timers, 0);
});

test("only a call that keeps alive holds the process", async () => {
  const { clock, backend } = stage();
  void outcomeOf(backend.call(10, () => new Promise(() => {}), false));
  await clock.advance(0);
  assert.deepEqual([clock.timers, clock.keepingAlive], [1, 0]);
  void outcomeOf(backend.call(10, () => new Promise(() => {})));
  await clock.advance(0);
  assert.deepEqual([clock.timers, clock.keepingAlive], [2, 1]);
  await clock.advance(10);
});

test("insisting repeats what is safe to repeat, at once and after a breath, then gives up", async () => {
  for (const [error, tries] of [
    [refusal("unknown", false), 3],
    [refusal("none", true), 3],
    [refusal("none", false), 1],
    [new UsageError("own"), 1],
  ] as const) {
    const { clock, backend } = stage();
    const at: number[] = [];
    const t0 = clock.now();
    const insisting = outcomeOf(
      backend.insist(1_000, async () => {
        at.push(clock.now() - t0);
        throw error;
      }),
    );
    await clock.advance(5_000);
    assert.equal(await insisting, error);
    assert.deepEqual(at, [0, 0, 100].slice(0, tries));
  }
});

test("insisting repeats an entry that failed, and gives the answer that came", async () => {
  const { clock, backend } = stage();
  const failed = { kind: "failed", effect: "unknown", error: new Error("shard down") } as const;
  let asked = 0;
  const insisting = backend.insist<Released>(100, async () => [++asked < 3 ? failed : RELEASED]);
  await clock.advance(1_000);
  assert.equal(await insisting, RELEASED);
  assert.equal(asked, 3);
});

test("an answer of the wrong length is a ContractError", async () => {
  const { backend } = stage();
  const error = await outcomeOf(backend.insist(100, async () => [RELEASED, RELEASED]));
  assert.ok(error instanceof ContractError);
  assert.throws(() => expectAnswers(backend, 2, [1]), /memory was asked for 2 answers and gave 1/);
  assert.deepEqual(expectAnswers(backend, 1, ["x"]), ["x"]);
  const holes = new Array<number>(2);
  holes[1] = 1;
  assert.throws(() => expectAnswers(backend, 2, holes), /asked for 2 answers and gave 1/);
});

test("abandoning buries the grantId only where a request may still be on its way", async () => {
  const buried: number[] = [];
  const { backend } = stage({
    release: async ([ref]) => {
      buried.push(ref!.tombstoneMs);
      return [RELEASED];
    },
  });
  backend.abandon(REF, false, 100);
  backend.abandon(REF, true, 100);
  await backend.settled();
  assert.equal(buried[0], 0);
  assert.ok(buried[1]! >= 60_000);
});

test("abandoning never throws: what failed is told as an event", async () => {
  const { backend } = stage({ release: () => Promise.reject(refusal("none", false)) });
  const told: { during: string; resource: string }[] = [];
  const listener = (m: unknown) => told.push(m as { during: string; resource: string });
  channels.failed.subscribe(listener);
  cleanUps.push(() => channels.failed.unsubscribe(listener));
  backend.abandon(REF, false, 100);
  await backend.settled();
  await new Promise((go) => setImmediate(go));
  assert.deepEqual(
    told.map(({ during, resource }) => [during, resource]),
    [["clean-up", "a"]],
  );
});

test("settled waits for work that is begun while it waits", async () => {
  const { backend } = stage();
  const order: string[] = [];
  const step = (name: string) =>
    new Promise<void>((go) =>
      setImmediate(() => {
        order.push(name);
        if (name === "first") backend.track(step("second"));
        go();
      }),
    );
  backend.track(step("first"));
  backend.track(Promise.reject(new Error("not heard of again")));
  await backend.settled();
  assert.deepEqual(order, ["first", "second"]);
});

function grantOf(resource: string, token: bigint, tokens = 1, mode: Claim["mode"] = "exclusive") {
  const claim: Claim = {
    ...{ resource, grantId: REF.grantId, mode, limit: null, ttlMs: 1_000 },
    ...{ lockDelayMs: 0, tokens, label: "" },
  };
  const granted = { kind: "granted", token, tokens, since: 0, ttlMs: 1_000 } as const;
  return new Grant(claim, granted, 0, new Doubt());
}

test("a token that repeats, goes back or lies in the last range is a ContractError", () => {
  const { backend } = stage();
  backend.checkToken(grantOf("a", 10n, 5));
  for (const token of [10n, 9n, 14n]) {
    assert.throws(() => backend.checkToken(grantOf("a", token)), ContractError);
  }
  backend.checkToken(grantOf("a", 15n));
  backend.checkToken(grantOf("b", 1n));
  backend.checkToken(grantOf("z", 0n));
});

test("a shared grant below another shared one is no defect, an exclusive one below it is", () => {
  const { backend } = stage();
  backend.checkToken(grantOf("a", 10n, 1, "shared"));
  backend.checkToken(grantOf("a", 9n, 1, "shared"));
  assert.throws(() => backend.checkToken(grantOf("a", 10n)), ContractError);
  backend.checkToken(grantOf("a", 11n));
});

test("the tokens of the last thousand resources are remembered, the most recent ones", () => {
  const { backend } = stage();
  for (let i = 0; i < 1_025; i++) {
    backend.checkToken(grantOf(`r${i}`, 5n));
    backend.checkToken(grantOf("busy", BigInt(i)));
  }
  assert.throws(() => backend.checkToken(grantOf("busy", 0n)), ContractError);
  assert.throws(() => backend.checkToken(grantOf("r1024", 5n)), ContractError);
  backend.checkToken(grantOf("r0", 5n));
});

test("an engine that answers without the event loop does not starve it", async () => {
  const { backend } = stage();
  let turns = 0;
  const count = () => {
    turns++;
    next = setImmediate(count);
  };
  let next = setImmediate(count);
  for (let i = 0; i < 1_000; i++) await backend.call(100, async () => "at once");
  clearImmediate(next);
  assert.ok(turns >= 5, `${turns} turns in 1 000 calls`);
});

test("calls that had to wait for a turn are sent in the order in which they were made", async () => {
  const { backend } = stage();
  const sent: number[] = [];
  const calls = Array.from({ length: 500 }, (_, i) =>
    backend.call(100, async () => {
      sent.push(i);
    }),
  );
  await Promise.all(calls);
  assert.deepEqual(
    sent,
    [...sent].sort((a, b) => a - b),
  );
});
