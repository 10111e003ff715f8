import assert from "node:assert/strict";
import { test } from "node:test";
import { EngineError } from "../errors.js";
import { failed, settleEach } from "./settle-each.js";

test("a failing ref does not affect the others, and answers keep their order", async () => {
  const refused = new EngineError("refused", { effect: "none", retryable: true });
  const answers = await settleEach([3, 0, 1], async (ref) => {
    for (let turns = 0; turns < ref; turns++) await null;
    if (ref === 0) throw refused;
    return { kind: "released", ref };
  });
  assert.deepEqual(answers, [
    { kind: "released", ref: 3 },
    { kind: "failed", effect: "none", error: refused },
    { kind: "released", ref: 1 },
  ]);
});

test("an error thrown synchronously becomes an answer", async () => {
  const broken = new TypeError("broken");
  const [answer] = await settleEach([1], () => {
    throw broken;
  });
  assert.deepEqual(answer, { kind: "failed", effect: "unknown", error: broken });
});

test("a thrown value is explained, and always becomes an Error", async () => {
  const ask = () => Promise.reject("no error");
  const [plain] = await settleEach([1], ask);
  assert.equal(plain?.error.message, "no error");
  const explained = new EngineError("explained", { effect: "none", retryable: false });
  assert.deepEqual(await settleEach([1], ask, () => explained), [failed(explained)]);
});

test("only an EngineError can say that nothing was done", () => {
  assert.equal(failed(new Error("any")).effect, "unknown");
  for (const effect of ["none", "unknown"] as const) {
    assert.equal(failed(new EngineError("own", { effect, retryable: true })).effect, effect);
  }
});
