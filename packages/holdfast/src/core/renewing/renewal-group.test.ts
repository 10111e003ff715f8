import assert from "node:assert/strict";
import { test } from "node:test";
import { randomOf } from "../../test-support/seeded-random.fixture.js";
import type { Grant } from "../holding/grant.js";
import type { HeldLease } from "../holding/lease.js";
import { grantOf, groupOf, managed, many, TERMS } from "./renewal-group.fixture.js";
import type { RenewalGroup } from "./renewal-group.js";

test("a grant is valid from its since for its ttl minus drift", () => {
  assert.equal(grantOf("a").group.validUntil, 1_100);
  assert.equal(grantOf("a", 0.1).group.validUntil, 1_000);
  const short = grantOf("a", 0, 400);
  assert.equal(short.group.validUntil, 500, "what the backend says counts, not what was asked");
  assert.ok(short.group.needsFirstRenewal);
});

test("a confirmation moves validity forward, or back if it grants less", () => {
  const { group } = grantOf();
  Object.assign(group, { failures: 3, dangerTold: true, needsFirstRenewal: true });
  group.confirm({ since: 500, ttlMs: 1_000 });
  assert.equal(group.validUntil, 1_500);
  assert.deepEqual([group.failures, group.dangerTold, group.needsFirstRenewal], [0, false, false]);
  group.confirm({ since: 600, ttlMs: 100 });
  assert.equal(group.validUntil, 700);
});

test("an unanswered renewal can shorten validity from its send on, never extend it", () => {
  const { group } = grantOf();
  group.expect(200, 5_000);
  assert.equal(group.validUntil, 1_100);
  group.expect(200, 300);
  assert.equal(group.validUntil, 500);
});

test("livesFor is true only while no renewal asks for another ttl", () => {
  const { group } = grantOf();
  assert.ok(group.livesFor(1_000));
  group.willAsk(300);
  assert.equal(group.livesFor(1_000), false, "about to be asked for another life");
  group.expect(200, 300);
  assert.equal(group.livesFor(300), false, "asked for, and not confirmed");
  group.confirm({ since: 200, ttlMs: 300 });
  assert.ok(group.livesFor(300));
});

test("an answer sets the validity, whatever earlier unanswered renewals asked for", () => {
  const { group } = grantOf();
  group.expect(200, 300);
  assert.equal(group.validUntil, 500, "it may have been carried out");
  group.expect(1_000, 5_000);
  group.confirm({ since: 1_000, ttlMs: 5_000 });
  assert.equal(group.validUntil, 6_000, "the backend ignores the earlier one from now on");
});

test("a change of a group applies to all its grants, and to none that has left", () => {
  const all = many(3);
  const group = groupOf(all);
  group.confirm({ since: 800, ttlMs: 1_000 });
  assert.deepEqual(
    all.map((grant) => grant.group.validUntil),
    [1_800, 1_800, 1_800],
  );
  all[0]!.leaveGroup();
  group.confirm({ since: 900, ttlMs: 1_000 });
  assert.deepEqual(
    all.map((grant) => grant.group.since),
    [800, 900, 900],
  );
});

test("a grant that leaves has a copy of all that is known", () => {
  const all = many(2);
  const group = groupOf(all);
  group.expect(500, 300);
  const renewing = { over: Promise.resolve() };
  Object.assign(group, { renewAt: 700, failures: 2, dangerTold: true, renewing });
  const alone = all[1]!.leaveGroup();
  assert.notEqual(alone, group);
  assert.deepEqual(
    [alone.since, alone.ttlMs, alone.lifeMs, alone.validUntil],
    [500, 1_000, 300, 800],
  );
  assert.deepEqual([alone.renewAt, alone.failures, alone.dangerTold], [700, 2, true]);
  assert.deepEqual([alone.lostAt, alone.renewEveryMs], [group.lostAt, group.renewEveryMs]);
  assert.equal(alone.renewing, renewing);
  assert.ok(alone.managed);
  assert.equal(alone.livesFor(1_000), false, "what was asked for last has come along");
});

test("leaveGroup of a grant that is alone keeps its group", () => {
  const [first, second] = many(2) as [Grant, Grant];
  const group = groupOf([first, second]);
  first.leaveGroup();
  assert.equal(second.leaveGroup(), group);
  assert.deepEqual([group.size, group.grants], [1, [second]]);
});

test("refs is the same list until a grant joins, leaves or changes its ttl or token", () => {
  const [first, second, third] = many(3) as [Grant, Grant, Grant];
  const group = groupOf([first, second]);
  const sent = group.grants;
  const { refs } = group;
  group.confirm({ since: 600, ttlMs: 1_000 });
  assert.equal(group.refs, refs);
  assert.ok(group.consistsOf(sent));
  group.confirm({ since: 600, ttlMs: 900 });
  assert.deepEqual(
    group.refs.map(({ ttlMs }) => ttlMs),
    [900, 900],
  );
  group.absorb([third.group]);
  assert.equal(group.consistsOf(sent), false);
  const names = () => group.refs.map(({ resource }) => resource).sort();
  assert.deepEqual(names(), ["r0", "r1", "r2"]);
  second.leaveGroup();
  assert.deepEqual(names(), ["r0", "r2"]);
  assert.equal(second.group.refs[0]!.index, 0);
  second.attachLease({ token: 2n, terms: TERMS } as HeldLease);
  assert.equal(second.group.refs[0]!.index, 1);
});

test("a batch that was sent keeps its list when grants leave", () => {
  const group = groupOf(many(10));
  const sent = group.grants;
  const before = [...sent];
  for (const grant of before.slice(0, 9)) grant.leaveGroup();
  assert.deepEqual(sent, before);
  assert.equal(group.consistsOf(sent), false);
  assert.deepEqual(group.grants, [before[9]]);
});

test("a new lease takes its grant out of the group, and its terms count for that grant alone", () => {
  const [first, second] = many(2) as [Grant, Grant];
  const group = groupOf([first, second]);
  const terms = { ...TERMS, graceMs: 400, maxHoldMs: 50 };
  first.attachLease({ token: 1n, terms, holdUntil: 700 } as HeldLease);
  assert.deepEqual([first.group.lostAt, group.lostAt], [700, 1_400]);
  assert.deepEqual(group.grants, [second]);
});

test("all grants of a group share the same state, in any order of joining and leaving", () => {
  for (let seed = 1; seed <= 200; seed++) {
    const random = randomOf(seed);
    const spare = many(30);
    const inside = new Set(spare.splice(0, 10));
    const left = new Map<Grant, number>();
    const group = groupOf([...inside]);
    for (let since = 501; inside.size > 1; since++) {
      group.confirm({ since, ttlMs: 1_000 });
      if (spare.length > 0 && random(3) === 0) {
        const more = spare.splice(0, 1 + random(3));
        for (const grant of more) inside.add(grant);
        group.absorb(more.map((grant) => grant.group));
      }
      const all = [...inside];
      for (const grant of all.slice(0, random(3))) {
        const gone = all[random(all.length)]!;
        if (inside.size > 1 && inside.delete(gone)) {
          gone.leaveGroup();
          left.set(gone, since);
        }
        assert.equal(grant.group === group, inside.has(grant));
      }
      assert.equal(group.size, inside.size);
      assert.deepEqual(new Set(group.grants), inside);
      for (const grant of inside) assert.equal(grant.group.since, since, `seed ${seed}`);
      for (const [grant, at] of left) assert.equal(grant.group.since, at, `seed ${seed}`);
    }
  }
});

test("grants on equal terms that were renewed at one instant have the same terms", () => {
  assert.ok(managed().group.hasSameTerms(managed().group));
});

test("grants that differ in anything that a renewal depends on do not have the same terms", () => {
  const others = [
    ...[{ ttlMs: 999 }, { graceMs: 99 }, { renewEveryMs: 299 }, { callTimeoutMs: 49 }].map(
      (terms) => managed(terms).group,
    ),
  ];
  const after = (what: (group: RenewalGroup) => void) => {
    const { group } = managed();
    what(group);
    others.push(group);
  };
  after((group) => group.confirm({ since: 501, ttlMs: 1_000 }));
  after((group) => group.confirm({ since: 500, ttlMs: 1_001 }));
  after((group) => group.confirm({ since: 501, ttlMs: 999 }));
  after((group) => group.willAsk(999));
  for (const [i, other] of others.entries()) {
    assert.equal(managed().group.hasSameTerms(other), false, `the one at ${i}`);
    assert.equal(other.hasSameTerms(managed().group), false, `the one at ${i}`);
  }
});

test("a grant without renewal, with maxHoldMs or with askAgain shares no renewal", () => {
  assert.ok(managed().group.canShareRenewal);
  assert.equal(managed({ renew: false }).group.canShareRenewal, false);
  assert.equal(managed({ maxHoldMs: 5_000 }).group.canShareRenewal, false);
  const [left, asked] = [managed().group, managed().group];
  left.managed = false;
  asked.askAgain = true;
  assert.deepEqual([left.canShareRenewal, asked.canShareRenewal], [false, false]);
});
