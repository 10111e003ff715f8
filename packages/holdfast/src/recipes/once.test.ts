import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { memoryEngine } from "../engines/memory/index.js";
import { LeaseLostError, UsageError } from "../errors.js";
import { Locks } from "../locks.js";
import { ManualClock } from "../testing/index.js";
import { backends } from "./backends.fixture.js";

for (const { name, open } of backends()) {
  test(`${name}: of many that start together one runs, and the others say so`, async () => {
    await using ours = new Locks(open());
    await using theirs = new Locks(open());
    let runs = 0;
    const results = await Promise.all(
      Array.from({ length: 6 }, (_, i) =>
        [ours, theirs][i % 2]!.once(
          "nightly",
          { atMostMs: 5_000, atLeastMs: 400 },
          async (lease) => {
            assert.ok(lease.held);
            return ++runs;
          },
        ),
      ),
    );
    assert.equal(runs, 1);
    assert.equal(results.filter(({ ran }) => ran).length, 1);
    assert.deepEqual(
      results.find(({ ran }) => ran),
      { ran: true, value: 1 },
    );
  });

  test(`${name}: a run that is done early keeps others out until atLeastMs, also when it closes`, async () => {
    await using theirs = new Locks(open());
    const ours = new Locks(open());
    const started = performance.now();
    await ours.once("early", { atMostMs: 10_000, atLeastMs: 400 }, () => "done");
    await ours.close();
    assert.equal((await theirs.once("early", { atMostMs: 1_000 }, () => 1)).ran, false);
    while (!(await theirs.once("early", { atMostMs: 1_000 }, () => 1)).ran) await sleep(10);
    assert.ok(performance.now() - started >= 395);
    assert.ok(performance.now() - started < 5_000, "it did not end before atMostMs");
  });
}

test("without atLeastMs the next one may run at once, also after a failure", async () => {
  await using locks = new Locks(memoryEngine());
  const options = { atMostMs: 1_000 };
  await assert.rejects(
    locks.once("a", options, () => Promise.reject(new Error("mine"))),
    /mine/,
  );
  assert.deepEqual(await locks.once("a", options, () => 2), { ran: true, value: 2 });
});

test("a run that fails early keeps others out as well", async () => {
  await using locks = new Locks(memoryEngine());
  const options = { atMostMs: 60_000, atLeastMs: 30_000 };
  await assert.rejects(
    locks.once("b", options, () => Promise.reject(new Error("mine"))),
    /mine/,
  );
  assert.deepEqual(await locks.once("b", options, () => 2), { ran: false });
});

test("a run that takes longer than atMostMs loses its lease and rejects", async () => {
  const clock = new ManualClock();
  await using locks = new Locks(memoryEngine(), { clock });
  await assert.rejects(
    locks.once("c", { atMostMs: 1_000 }, async (lease) => {
      await clock.pause(1_500);
      assert.equal(lease.held, false);
    }),
    LeaseLostError,
  );
});

test("options are looked at before anything is asked", async () => {
  await using locks = new Locks(memoryEngine());
  const fn = () => 1;
  await assert.rejects(locks.once("d", { atMostMs: 0 }, fn), UsageError);
  await assert.rejects(locks.once("d", { atMostMs: 10, atLeastMs: 20 }, fn), UsageError);
  await assert.rejects(locks.once("d", { atMostMs: 1_000 }, undefined as never), UsageError);
});
