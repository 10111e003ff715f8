// When operations are sent, and which are sent together. No server decides that, so these tests use
// none.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep, setImmediate as turn } from "node:timers/promises";
import type { RedisConnection } from "../clients/connection.js";
import { ScriptBatcher } from "./script-batcher.js";

function setUp() {
  const sent: { readonly keys: string[]; readonly answer: () => void }[] = [];
  const runScript: RedisConnection["runScript"] = (_, keys) =>
    new Promise((resolve) => {
      const answers = keys.length === 1 ? 1 : keys.map(() => 1);
      sent.push({ keys, answer: () => resolve(answers) });
    });
  const terms = { idleMs: 1, channelOf: () => "here", wait: null, spin: true };
  const batcher = new ScriptBatcher({ runScript } as unknown as RedisConnection, terms);
  const fail = (error: unknown) => {
    throw error;
  };
  const ask = (key: string) =>
    batcher.run(key, ["release", "id", "0"], { read: (answer) => answer, fail });
  return { batcher, sent, ask, keys: () => sent.map((call) => call.keys) };
}

async function ticks(): Promise<void> {
  for (let i = 0; i < 10; i++) await new Promise<void>((go) => process.nextTick(go));
}

test("operations of one turn travel together", async () => {
  const { sent, ask, keys } = setUp();
  const asked = Promise.all([ask("a"), ask("b")]);
  await turn();
  assert.deepEqual(keys(), [["a", "b"]]);
  sent[0]!.answer();
  assert.deepEqual(await asked, [1, 1]);
});

test("with two calls in progress, new operations are sent at the next answer", async () => {
  const { sent, ask, keys } = setUp();
  for (const key of ["a", "b"]) {
    void ask(key);
    await turn();
  }
  // Ticks only: the event loop does not turn, so no timer can come between.
  void ask("c");
  await ticks();
  assert.equal(sent.length, 2);
  void ask("d");
  sent[0]!.answer();
  await ticks();
  assert.deepEqual(keys(), [["a"], ["b"], ["c", "d"]]);
});

test("an operation at the time of the last answers does not overtake those that were held back", async () => {
  const { sent, ask, keys } = setUp();
  void ask("a");
  await turn();
  const last = ask("b");
  await turn();
  void ask("c");
  await ticks();
  assert.equal(sent.length, 2);
  void last.then(() => ask("d"));
  for (const { answer } of sent) answer();
  await ticks();
  assert.deepEqual(keys().flat(), ["a", "b", "c", "d"]);
});

test("a server that does not answer delays new operations only shortly", async () => {
  const { ask, keys } = setUp();
  for (const key of ["a", "b"]) {
    void ask(key);
    await turn();
  }
  void ask("c");
  for (let looks = 0; looks < 500 && keys().length < 3; looks++) await sleep(2);
  assert.deepEqual(keys(), [["a"], ["b"], ["c"]]);
});

test("single operations are sent at once; more in the same turn follow together", async () => {
  const { sent, ask, keys } = setUp();
  const first = ask("a");
  await turn();
  sent[0]!.answer();
  await first;
  void ask("b");
  assert.deepEqual(keys(), [["a"], ["b"]]);
  void ask("c");
  void ask("d");
  assert.equal(sent.length, 2);
  await ticks();
  assert.deepEqual(keys(), [["a"], ["b"], ["c", "d"]]);
});

test("300,000 operations of one turn are all sent", async () => {
  const { sent, ask } = setUp();
  const names = Array.from({ length: 300_000 }, (_, i) => `r${i}`);
  const answers = Promise.all(names.map((name) => ask(name)));
  await turn();
  await turn();
  for (const call of sent) call.answer();
  assert.equal((await answers).length, names.length);
});

test("a closed batcher refuses new operations, and still answers those it has sent", async () => {
  const { batcher, sent, ask } = setUp();
  const before = ask("a");
  await turn();
  batcher.close();
  const refused = { code: "ENGINE", effect: "none" };
  await assert.rejects(ask("b"), refused);
  await assert.rejects(batcher.runAtOnce(["b", "c"], ["renew-many"]), refused);
  await assert.rejects(
    batcher.runAll(["b", "c"], (key) => ({ key, words: ["inspect"] }), 100),
    refused,
  );
  sent[0]!.answer();
  assert.equal(await before, 1);
  assert.equal(sent.length, 1);
});
