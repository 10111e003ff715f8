import assert from "node:assert/strict";
import { test } from "node:test";
import type { Claim } from "./engine.js";
import { Doubt, Grant } from "./grant.js";
import type { HeldLease } from "./lease.js";
import type { Terms } from "./options.js";

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

test("a grant lives for its ttl only while no renewal asks for another", () => {
  const grant = grantOf();
  assert.ok(grant.livesFor(1_000));
  grant.willAsk(300);
  assert.equal(grant.livesFor(1_000), false, "about to be asked for another life");
  grant.expect(200, 300);
  assert.equal(grant.livesFor(300), false, "asked for, and not confirmed");
  grant.confirm({ since: 200, ttlMs: 300 });
  assert.ok(grant.livesFor(300));
});

test("an answer counts for all it says, whatever was asked before it without an answer", () => {
  const grant = grantOf();
  grant.expect(200, 300);
  assert.equal(grant.validUntil, 500, "it may have been carried out");
  grant.expect(1_000, 5_000);
  grant.confirm({ since: 1_000, ttlMs: 5_000 });
  assert.equal(grant.validUntil, 6_000, "the backend ignores the earlier one from now on");
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

/** A grant that is kept, renewed at 500 for a second, and carried by a lease on these terms. */
function keptOn(more: Partial<Terms> = {}): Grant {
  const grant = grantOf();
  const terms = {
    ...{ ttlMs: 1_000, renew: true, renewEveryMs: 300, maxHoldMs: Infinity, graceMs: 100 },
    ...{ callTimeoutMs: 50, ...more },
  } as Terms;
  grant.carry({ terms, holdUntil: 100 + terms.maxHoldMs } as HeldLease);
  grant.kept = true;
  grant.confirm({ since: 500, ttlMs: 1_000 });
  return grant;
}

test("grants on equal terms that were renewed at one instant are akin", () => {
  assert.ok(keptOn().isAkinTo(keptOn()));
});

test("grants that differ in anything that a renewal depends on are not akin", () => {
  const others: Grant[] = [
    ...[{ ttlMs: 999 }, { graceMs: 99 }, { renewEveryMs: 299 }, { callTimeoutMs: 49 }].map(keptOn),
  ];
  const after = (what: (grant: Grant) => void) => {
    const grant = keptOn();
    what(grant);
    others.push(grant);
  };
  after((grant) => grant.confirm({ since: 501, ttlMs: 1_000 }));
  after((grant) => grant.confirm({ since: 500, ttlMs: 1_001 }));
  after((grant) => grant.confirm({ since: 501, ttlMs: 999 }));
  after((grant) => grant.willAsk(999));
  for (const [i, other] of others.entries()) {
    assert.equal(keptOn().isAkinTo(other), false, `the one at ${i}`);
    assert.equal(other.isAkinTo(keptOn()), false, `the one at ${i}`);
  }
});

test("who is not renewed, has a last instant or must be asked about again keeps no company", () => {
  assert.ok(keptOn().isSociable);
  assert.equal(keptOn({ renew: false }).isSociable, false);
  assert.equal(keptOn({ maxHoldMs: 5_000 }).isSociable, false);
  const [left, asked] = [keptOn(), keptOn()];
  left.kept = false;
  asked.askAgain = true;
  assert.deepEqual([left.isSociable, asked.isSociable], [false, false]);
});
