import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { memoryEngine } from "../../engines/memory/index.js";
import { UsageError } from "../../errors.js";
import { Locks } from "../../locks.js";
import { flakyEngine } from "../../testing/index.js";
import { EXPONENTIAL_DEFAULTS, exponential, fixed, RetryWalk } from "./retry.js";

function take(delays: Iterable<number>, most = 50): number[] {
  const taken: number[] = [];
  for (const delay of delays) {
    if (taken.length === most) break;
    taken.push(delay);
  }
  return taken;
}

test("fixed gives the same delay, as often as `times` says, by default for ever", () => {
  assert.deepEqual(take(fixed({ delayMs: 7, times: 3 })), [7, 7, 7]);
  assert.deepEqual(take(fixed({ delayMs: 9_000 }), 100), Array(100).fill(9_000));
  assert.deepEqual(take(fixed({ delayMs: 0, times: 2 })), [0, 0]);
  assert.deepEqual(take(fixed({ delayMs: 5, times: 0 })), []);
});

test("fixed and exponential can be iterated again from the start", () => {
  const delays = exponential({ jitter: 0, times: 3 });
  assert.deepEqual(take(delays), take(delays));
});

test("exponential without jitter grows exactly by its factor, up to maxMs", () => {
  const delays = exponential({ minMs: 10, maxMs: 100, factor: 3, jitter: 0 });
  assert.deepEqual(take(delays, 5), [10, 30, 90, 100, 100]);
  assert.deepEqual(take(exponential({ jitter: 0 }), 1), [EXPONENTIAL_DEFAULTS.minMs]);
});

test("exponential's delays lie between (1 - jitter) and 1 times the plain one", () => {
  const options = fc.record({
    minMs: fc.integer({ min: 0, max: 1_000 }),
    more: fc.integer({ min: 0, max: 10_000 }),
    factor: fc.double({ min: 1, max: 5, noNaN: true }),
    jitter: fc.double({ min: 0, max: 1, noNaN: true }),
  });
  fc.assert(
    fc.property(options, ({ minMs, more, factor, jitter }) => {
      const maxMs = minMs + more;
      const given = take(exponential({ minMs, maxMs, factor, jitter }), 20);
      for (const [n, delay] of given.entries()) {
        const plain = Math.min(maxMs, minMs * factor ** n);
        assert.ok(delay <= plain && delay >= plain * (1 - jitter) - 1e-6);
      }
    }),
  );
});

test("exponential's jitter is not the same every time", () => {
  const delays = take(exponential({ minMs: 1_000, maxMs: 1_000 }), 20);
  assert.ok(new Set(delays).size > 10);
});

test("exponential yields finite delays for ever", () => {
  for (const options of [{ minMs: 0 }, { minMs: 1 }, { factor: 100 }]) {
    const walk = new RetryWalk(exponential(options));
    for (let n = 0; n < 2_000; n++) assert.ok(Number.isFinite(walk.next(undefined)));
  }
});

test("impossible delays are refused when the strategy is made", () => {
  for (const options of [
    { minMs: -1 },
    { minMs: 10, maxMs: 5 },
    { factor: 0.5 },
    { jitter: 2 },
    { jitter: -1 },
    { times: -1 },
    { minMs: Number.NaN },
  ]) {
    assert.throws(() => exponential(options), UsageError, JSON.stringify(options));
  }
  assert.throws(() => fixed({ delayMs: -1 }), UsageError);
});

test("a RetryWalk without a strategy allows no other try", () => {
  assert.equal(new RetryWalk(undefined).next(new Error("x")), null);
});

test("a RetryWalk ends with its iterable", () => {
  const walk = new RetryWalk([5, 6]);
  assert.deepEqual([walk.next(1), walk.next(2), walk.next(3), walk.next(4)], [5, 6, null, null]);
});

test("a generator gets the first error as its argument and each later one from yield", () => {
  const seen: unknown[] = [];
  const walk = new RetryWalk(function* (first): Generator<number, void, unknown> {
    seen.push(first);
    for (;;) seen.push(yield 1);
  });
  for (const error of ["one", "two", "three"]) walk.next(error);
  assert.deepEqual(seen, ["one", "two", "three"]);
});

test("a generator is not started before the first error", () => {
  let begun = false;
  const walk = new RetryWalk(function* () {
    begun = true;
    yield 1;
  });
  walk.end();
  assert.equal(begun, false);
});

test("a generator's finally runs once, at the end of the RetryWalk", () => {
  let ended = 0;
  const walk = new RetryWalk(function* () {
    try {
      for (;;) yield 1;
    } finally {
      ended++;
    }
  });
  walk.next("error");
  walk.end();
  walk.end();
  assert.equal(ended, 1);
});

test("an error that a generator throws comes out of the RetryWalk", () => {
  const walk = new RetryWalk(function* (first): Generator<number, void, unknown> {
    yield 1;
    throw first;
  });
  const error = new Error("no more");
  walk.next(error);
  assert.throws(() => walk.next("second"), error);
});

test("a strategy that gives no iterator is refused, and its result is shown", async () => {
  for (const given of [null, undefined, 5, {}, [100]]) {
    assert.throws(() => new RetryWalk((() => given) as never).next("error"), UsageError);
  }
  const engine = flakyEngine(memoryEngine());
  await using locks = new Locks(engine);
  engine.inject("enqueue", { kind: "fail" });
  await assert.rejects(
    locks.acquire("a", { retry: (() => null) as never }),
    (error) => error instanceof UsageError && /must give an iterator.*got null/.test(error.message),
  );
});

test("a yielded value that is no delay is refused and shown", () => {
  for (const value of [-1, Number.NaN, Infinity, "5", undefined, 5n]) {
    const walk = new RetryWalk([value] as Iterable<number>);
    assert.throws(() => walk.next("error"), UsageError, String(value));
  }
});
