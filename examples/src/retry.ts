// What to do when the backend fails while we ask. Waiting for a busy lock needs none of this: the
// engine's queue does that.
import { connect, EngineError, exponential, fixed, type RetryStrategy } from "holdfast";
import { memoryEngine } from "holdfast/memory";
import { flakyEngine } from "holdfast/testing";

const engine = flakyEngine(memoryEngine());
await using locks = await connect(engine);

// #region strategies
const threeTries = fixed({ delayMs: 20, times: 2 }); // the first, and two more
const patient = exponential({ minMs: 10, maxMs: 1_000, jitter: 0.5, times: 10 });

// A generator is handed each error, and ends the trying by returning.
function* onlyIfNothingHappened(error: unknown): Generator<number, void, unknown> {
  for (let delayMs = 10; error instanceof EngineError && error.effect === "none"; delayMs *= 2) {
    error = yield delayMs;
  }
}
// #endregion

const strategies: Record<string, RetryStrategy> = { threeTries, patient, onlyIfNothingHappened };
for (const [name, retry] of Object.entries(strategies)) {
  const before = engine.calls("enqueue");
  engine.inject("enqueue", { kind: "fail" }, 2);
  await using _lease = await locks.acquire("job", { retry });
  console.log(`${name}: granted at try ${engine.calls("enqueue") - before}`);
}

engine.inject("enqueue", { kind: "fail" }, 3);
try {
  await locks.acquire("job", { retry: threeTries });
} catch (error) {
  console.log(`threeTries gives up with ${(error as Error).name}`);
}
