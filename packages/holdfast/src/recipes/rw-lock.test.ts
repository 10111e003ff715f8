import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { memoryEngine } from "../engines/memory/index.js";
import { AcquireTimeoutError, UsageError } from "../errors.js";
import { Locks } from "../locks.js";
import { flakyEngine } from "../testing/index.js";
import { backends } from "./backends.fixture.js";

for (const { name, open } of backends()) {
  test(`${name}: readers hold the lock together, a writer alone, across connections`, async () => {
    await using ours = new Locks(open());
    await using theirs = new Locks(open());
    const [mine, yours] = [ours.rwLock("catalogue"), theirs.rwLock("catalogue")];
    const [first, second] = [await mine.read(), await yours.read()];
    assert.deepEqual([first.mode, second.mode], ["shared", "shared"]);
    assert.equal(await yours.tryWrite(), null);
    await first.release();
    await second.release();
    const writer = await mine.write();
    assert.equal(writer.mode, "exclusive");
    assert.ok(writer.token > second.token);
    assert.deepEqual([await yours.tryRead(), await yours.tryWrite()], [null, null]);
    await assert.rejects(yours.read({ waitMs: 20 }), AcquireTimeoutError);
    await writer.release();
    await using reader = await yours.tryRead();
    assert.ok(reader?.held);
  });

  test(`${name}: a waiting writer is served before readers that came later`, async () => {
    await using ours = new Locks(open());
    await using theirs = new Locks(open());
    const [mine, yours] = [ours.rwLock("line"), theirs.rwLock("line")];
    const order: string[] = [];
    const first = await mine.read();
    const writing = yours.write().then(async (lease) => {
      order.push("writer");
      await lease.release();
    });
    await untilWaiting(ours, "line", 1);
    const reading = mine.read().then(async (lease) => {
      order.push("reader");
      await lease.release();
    });
    await untilWaiting(ours, "line", 2);
    assert.equal(await mine.tryRead(), null, "a reader that does not wait overtakes no writer");
    await first.release();
    await Promise.all([writing, reading]);
    assert.deepEqual(order, ["writer", "reader"]);
  });
}

test("a recipe's defaults override the connection's, and a call's options override both", async () => {
  const engine = flakyEngine(memoryEngine());
  await using locks = new Locks(engine, { defaults: { label: "connection", ttlMs: 5_000 } });
  const catalogue = locks.rwLock("a", { label: "recipe", waitMs: 10 });
  const labels: string[] = [];
  for (const options of [{}, { label: "call" }]) {
    await using _lease = await catalogue.read(options);
    labels.push((await locks.inspect("a")).holders[0]!.label);
  }
  assert.deepEqual(labels, ["recipe", "call"]);
  await using _writer = await catalogue.write();
  assert.equal(await catalogue.tryRead(), null, "waitMs among the defaults is not tryRead's");
  await assert.rejects(catalogue.read(), AcquireTimeoutError);
});

test("mode, limit and a wrong name are refused before anything is sent", async () => {
  const engine = flakyEngine(memoryEngine());
  await using locks = new Locks(engine);
  assert.throws(() => locks.rwLock(""), UsageError);
  const { read, tryWrite } = locks.rwLock("a");
  await assert.rejects(read({ mode: "exclusive" } as never), /chooses the mode itself/);
  await assert.rejects(tryWrite({ limit: 2 } as never), /chooses the limit itself/);
  await assert.rejects(tryWrite({ waitMs: 5 } as never), UsageError);
  assert.equal(engine.calls("enqueue") + engine.calls("tryAcquire"), 0);
});

async function untilWaiting(locks: Locks, resource: string, count: number): Promise<void> {
  while ((await locks.inspect(resource)).waiters.length < count) await sleep(2);
}
