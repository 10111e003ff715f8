import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { ReleaseRef } from "../../../engine.js";
import { Holdings } from "./holdings.js";

function stage() {
  const ended: string[] = [];
  const holdings = new Holdings(async (refs: readonly ReleaseRef[]) => {
    for (const { grantId } of refs) {
      ended.push(grantId);
      holdings.drop(grantId);
    }
  });
  return { holdings, ended };
}

test("what is not renewed is given back, also what came last and ends first", async (t) => {
  const { holdings, ended } = stage();
  t.after(() => holdings.close());
  holdings.keep({ resource: "a", grantId: "long", ttlMs: 60_000 });
  holdings.keep({ resource: "b", grantId: "short", ttlMs: 30 });
  holdings.keep({ resource: "c", grantId: "renewed", ttlMs: 30 });
  holdings.prolong([{ resource: "c", grantId: "renewed", ttlMs: 200 }], 2);
  holdings.prolong([{ resource: "c", grantId: "renewed", ttlMs: 60_000 }], 1);
  for (let looks = 0; looks < 500 && ended.length < 2; looks++) await sleep(10);
  assert.deepEqual(ended, ["short", "renewed"]);
  assert.ok(holdings.has("long"));
});

test("a grant that is kept again, as after a repeated claim, ends no earlier", async (t) => {
  const { holdings, ended } = stage();
  t.after(() => holdings.close());
  holdings.keep({ resource: "a", grantId: "again", ttlMs: 30 });
  holdings.prolong([{ resource: "a", grantId: "again", ttlMs: 60_000 }], 1);
  holdings.keep({ resource: "a", grantId: "again", ttlMs: 30 });
  holdings.keep({ resource: "b", grantId: "short", ttlMs: 60 });
  for (let looks = 0; looks < 500 && ended.length < 1; looks++) await sleep(10);
  assert.deepEqual(ended, ["short"]);
  assert.ok(holdings.has("again"));
});

test("three hundred thousand are no more trouble than one", (t) => {
  const { holdings } = stage();
  t.after(() => holdings.close());
  for (let i = 0; i < 300_000; i++) {
    holdings.keep({ resource: "a", grantId: String(i), ttlMs: 60_000 + i });
  }
  assert.ok(holdings.has("299999"));
});
