import assert from "node:assert/strict";
import { test } from "node:test";
import type { Claim } from "./engine.js";
import { Doubt, Grant } from "./grant.js";

const CLAIM: Claim = {
  ...{ resource: "a", grantId: "f".repeat(32), mode: "exclusive", limit: null },
  ...{ ttlMs: 1_000, lockDelayMs: 0, tokens: 1, label: "" },
};

function grantOf(drift = 0, ttlMs = 1_000): Grant {
  const granted = { kind: "granted", token: 1n, tokens: 1, since: 100, ttlMs } as const;
  return new Grant(CLAIM, granted, drift, new Doubt());
}

test("a grant is good from its since for its ttl less drift", () => {
  assert.equal(grantOf().validUntil, 1_100);
  assert.equal(grantOf(0.1).validUntil, 1_000);
  assert.equal(grantOf(0, 400).validUntil, 500, "what the backend says counts, not what was asked");
});

test("a confirmation moves validity on, and back where it says less", () => {
  const grant = grantOf();
  grant.failures = 3;
  grant.inDangerTold = true;
  grant.confirm({ since: 500, ttlMs: 1_000 });
  assert.equal(grant.validUntil, 1_500);
  assert.deepEqual([grant.failures, grant.inDangerTold], [0, false]);
  grant.confirm({ since: 600, ttlMs: 100 });
  assert.equal(grant.validUntil, 700);
});

test("what a renewal may do counts from its send where it is less, never where it is more", () => {
  const grant = grantOf();
  grant.expect(200, 5_000);
  assert.equal(grant.validUntil, 1_100);
  grant.expect(200, 300);
  assert.equal(grant.validUntil, 500);
});

test("a renewal without an answer caps every later one at its ttl", () => {
  const grant = grantOf();
  grant.unanswered(300);
  grant.unanswered(800);
  grant.confirm({ since: 1_000, ttlMs: 5_000 });
  assert.equal(grant.validUntil, 1_300);
  assert.equal(grant.ttlMs, 5_000, "the next renewal still asks for what was wanted");
});

test("doubt is there while a request is unanswered, and for ever once an answer was lost", () => {
  const doubt = new Doubt();
  assert.equal(doubt.exists, false);
  doubt.unanswered++;
  assert.ok(doubt.exists);
  doubt.unanswered--;
  assert.equal(doubt.exists, false);
  doubt.lost = true;
  assert.ok(doubt.exists);
});
