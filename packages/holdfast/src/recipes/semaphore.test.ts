import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { memoryEngine } from "../engines/memory/index.js";
import { LeaseLostError, UsageError } from "../errors.js";
import { Locks } from "../locks.js";
import { flakyEngine, ManualClock } from "../testing/index.js";
import { backends } from "./backends.fixture.js";

for (const { name, open } of backends()) {
  test(`${name}: at most as many hold it as there are permits, across connections`, async () => {
    await using ours = new Locks(open());
    await using theirs = new Locks(open());
    const gpus = [ours, theirs].map((locks) => locks.semaphore("gpu", { permits: 3 }));
    let [busy, most, done] = [0, 0, 0];
    await Promise.all(
      Array.from({ length: 12 }, (_, i) =>
        gpus[i % 2]!.run(async (lease) => {
          assert.ok(lease.held);
          most = Math.max(most, ++busy);
          await sleep(5);
          busy--;
          done++;
        }),
      ),
    );
    assert.deepEqual([most, done], [3, 12]);
  });

  test(`${name}: tryAcquire returns null when no permit is left, and another number of permits is refused`, async () => {
    await using ours = new Locks(open());
    await using theirs = new Locks(open());
    const two = ours.semaphore("desk", { permits: 2 });
    const leases = [await two.acquire(), await two.tryAcquire()];
    assert.ok(leases.every((lease) => lease?.held && lease.mode === "shared"));
    assert.equal(await theirs.semaphore("desk", { permits: 2 }).tryAcquire(), null);
    assert.equal(await theirs.tryAcquire("desk"), null, "somebody holds it alone");
    await assert.rejects(theirs.semaphore("desk", { permits: 3 }).acquire(), UsageError);
    for (const lease of leases) await lease!.release();
    await using alone = await theirs.tryAcquire("desk");
    assert.ok(alone?.held);
    assert.equal(await two.tryAcquire(), null);
  });
}

test("run returns fn's value, takes options, and rejects when the permit was lost", async () => {
  const clock = new ManualClock();
  const locks = new Locks(memoryEngine(), { clock });
  const gpu = locks.semaphore("gpu", { permits: 2, ttlMs: 3_000 });
  assert.equal(await gpu.run(() => 1), 1);
  assert.equal(await gpu.run({ label: "me" }, async ({ resource }) => resource), "gpu");
  await assert.rejects(
    gpu.run(() => clock.pause(5_000)),
    LeaseLostError,
  );
  await assert.rejects(gpu.run({} as never), UsageError);
  await locks.close();
});

test("run refuses arguments in a wrong order or number, and names the right order", async () => {
  await using locks = new Locks(memoryEngine());
  const gpu = locks.semaphore("gpu", { permits: 2 });
  const run = gpu.run as (...args: unknown[]) => Promise<unknown>;
  const fn = () => 1;
  const order = /run is called as run\(fn\) or run\(options, fn\), and got run\(/;
  for (const args of [[fn, {}], [fn, "garbage"], ["gpu", fn], [{}, fn, 5], []]) {
    await assert.rejects(run(...args), (error) => {
      assert.ok(error instanceof UsageError, String(error));
      assert.match(error.message, order);
      return true;
    });
  }
});

test("semaphore checks permits, mode and limit before anything is sent", async () => {
  const engine = flakyEngine(memoryEngine());
  await using locks = new Locks(engine);
  for (const permits of [0, 1.5, -1, Infinity, "2", undefined] as number[]) {
    assert.throws(() => locks.semaphore("a", { permits }), /permits is .*whole number of 1 or/);
  }
  assert.throws(() => locks.semaphore("a", undefined as never), /permits/);
  assert.throws(() => locks.semaphore("a", { limit: 2 } as never), /no option "limit".*"permits"/);
  assert.throws(() => locks.semaphore("", { permits: 1 }), UsageError);
  const { acquire } = locks.semaphore("a", { permits: 1 });
  await assert.rejects(acquire({ limit: 2 } as never), /chooses the limit itself/);
  await assert.rejects(acquire({ permits: 2 } as never), /no option "permits"/);
  assert.equal(engine.calls("enqueue") + engine.calls("tryAcquire"), 0);
});
