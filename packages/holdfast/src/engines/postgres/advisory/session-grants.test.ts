import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { ReleaseRef } from "../../../engine.js";
import { SessionGrants } from "./session-grants.js";

function openGrants() {
  const ended: string[] = [];
  const grants = new SessionGrants(async (refs: readonly ReleaseRef[]) => {
    for (const { grantId } of refs) {
      ended.push(grantId);
      grants.delete(grantId);
    }
  });
  return { grants, ended };
}

test("a grant that is not renewed is released at its ttl, also one that came last and ends first", async (t) => {
  const { grants, ended } = openGrants();
  t.after(() => grants.close());
  grants.add({ resource: "a", grantId: "long", ttlMs: 60_000 });
  grants.add({ resource: "b", grantId: "short", ttlMs: 30 });
  grants.add({ resource: "c", grantId: "renewed", ttlMs: 30 });
  grants.renew([{ resource: "c", grantId: "renewed", ttlMs: 200 }], 2);
  grants.renew([{ resource: "c", grantId: "renewed", ttlMs: 60_000 }], 1);
  for (let looks = 0; looks < 500 && ended.length < 2; looks++) await sleep(10);
  assert.deepEqual(ended, ["short", "renewed"]);
  assert.ok(grants.has("long"));
});

test("a grant that is added again, as after a repeated claim, ends no earlier", async (t) => {
  const { grants, ended } = openGrants();
  t.after(() => grants.close());
  grants.add({ resource: "a", grantId: "again", ttlMs: 30 });
  grants.renew([{ resource: "a", grantId: "again", ttlMs: 60_000 }], 1);
  grants.add({ resource: "a", grantId: "again", ttlMs: 30 });
  grants.add({ resource: "b", grantId: "short", ttlMs: 60 });
  for (let looks = 0; looks < 500 && ended.length < 1; looks++) await sleep(10);
  assert.deepEqual(ended, ["short"]);
  assert.ok(grants.has("again"));
});

test("300,000 grants can be added quickly", (t) => {
  const { grants } = openGrants();
  t.after(() => grants.close());
  for (let i = 0; i < 300_000; i++) {
    grants.add({ resource: "a", grantId: String(i), ttlMs: 60_000 + i });
  }
  assert.ok(grants.has("299999"));
});
