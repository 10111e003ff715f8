import assert from "node:assert";
import { test } from "node:test";
import type { Harness } from "./harness.js";
import { checkLaws, findLaw, groups, laws, notApplicable, withoutQueue } from "./index.js";
import { altered } from "./wrong-engines/altered.js";
import { memoryHarness } from "./wrong-engines/memory-harness.js";

/** Collects the suite's tests in a table instead of a test runner. */
function collected(harness: Harness): Map<string, { title: string; run: () => Promise<void> }> {
  const tests = new Map<string, { title: string; run: () => Promise<void> }>();
  checkLaws(harness, (title, run) => tests.set(title.split(" ")[0]!, { title, run }));
  return tests;
}

test("laws are numbered without gaps, under the law they belong to", () => {
  for (const group of groups) {
    assert.deepEqual(
      group.laws.map((law) => law.id),
      group.laws.map((_, i) => `${group.id}.${i + 1}`),
    );
  }
  assert.deepEqual(
    groups.map((group) => group.id),
    Array.from({ length: 24 }, (_, i) => `L${i}`),
  );
});

test("every law is a test, and one that does not apply says why", () => {
  const harness = memoryHarness();
  const tests = collected(harness);
  assert.equal(tests.size, laws.length);
  for (const { law, why } of notApplicable(harness)) {
    assert.match(tests.get(law.id)!.title, /\(not applicable: /);
    assert(tests.get(law.id)!.title.includes(why));
  }
  assert.deepEqual(
    notApplicable(harness).filter(
      ({ law }) => !law.needs.some((n) => n === "url" || n === "restart"),
    ),
    [],
  );
});

test("an excuse is accepted only while its witness fails by an assertion", async () => {
  const excused = (witness: () => Promise<void>) =>
    collected({ ...memoryHarness(), excuses: [{ law: "L1.1", why: "a test", witness }] }).get(
      "L1.1",
    )!;
  const good = excused(async () => assert.fail("as promised"));
  assert.match(good.title, /\(excused: a test\)$/);
  await good.run();
  await assert.rejects(excused(async () => {}).run(), /the excuse must go/);
  const stumbling = excused(async () => {
    throw new TypeError("no such method");
  });
  await assert.rejects(stumbling.run(), TypeError);
});

test("the excuses of an engine without a queue go once the engine keeps the order", async () => {
  // A memory engine that grants the first of three claims only, as if a waiter came before the third.
  let tries = 0;
  const excuses = withoutQueue("a test", "L2.13", "L13.10");
  const harness = memoryHarness((engine) =>
    altered(engine, {
      tryAcquire: async (claim, call) =>
        ++tries % 3 === 1 ? engine.tryAcquire(claim, call) : { kind: "busy", holders: [] },
    }),
  );
  const all = collected({ ...harness, excuses });
  for (const { law } of excuses) await assert.rejects(all.get(law)!.run(), /the excuse must go/);
  const refusing = memoryHarness((engine) =>
    altered(engine, { tryAcquire: async () => ({ kind: "busy", holders: [] }) }),
  );
  const useless = collected({ ...refusing, excuses });
  for (const { law } of excuses) await assert.rejects(useless.get(law)!.run(), /a free resource/);
});

test("an excuse may name a whole law, and must name one that exists", () => {
  const witness = async () => {};
  const all = collected({ ...memoryHarness(), excuses: [{ law: "L13", why: "a test", witness }] });
  for (const law of laws.filter(({ id }) => id.startsWith("L13."))) {
    assert.match(all.get(law.id)!.title, /\(excused: a test\)/);
  }
  assert.doesNotMatch(all.get("L1.3")!.title, /excused/);
  const harness = { ...memoryHarness(), excuses: [{ law: "L99", why: "a test", witness }] };
  assert.throws(() => checkLaws(harness, () => {}), /L99/);
});

test("L0.1 catches a harness that declares less than the engine offers", async () => {
  const right = memoryHarness();
  const traits = { ...right.traits!, lockDelay: false };
  for (const wrong of [{ queue: false }, { watch: false }, { traits }]) {
    await assert.rejects(findLaw("L0.1").run({ ...right, ...wrong }), { code: "ERR_ASSERTION" });
  }
  const { traits: _traits, ...undeclared } = right;
  await findLaw("L0.1").run(undeclared);
  const narrow = memoryHarness((engine) => altered(engine, { traits }));
  const { traits: _declared, ...silent } = narrow;
  await assert.rejects(findLaw("L0.1").run(silent), { code: "ERR_ASSERTION" });
});
