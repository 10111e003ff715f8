import assert from "node:assert/strict";
import { test } from "node:test";
import { randomOf } from "./chance.fixture.js";
import { Company, isKept, joined, type Ward } from "./company.js";
import type { Claim } from "./engine.js";
import { CERTAIN, Grant } from "./grant.js";
import type { HeldLease } from "./lease.js";
import { ACQUIRE_DEFAULTS, type Terms } from "./options.js";

function grants(count: number): Grant[] {
  return Array.from({ length: count }, (_, i) => {
    const claim: Claim = {
      ...{ resource: `r${i}`, grantId: String(i).padStart(32, "0"), mode: "exclusive" as const },
      ...{ limit: null, ttlMs: 1_000, lockDelayMs: 0, tokens: 1, label: "" },
    };
    const granted = { kind: "granted", token: 1n, tokens: 1, since: 0, ttlMs: 1_000 } as const;
    return new Grant(claim, granted, 0, CERTAIN);
  });
}

test("what its leader is told is true of all, and of nobody who has left", () => {
  const all = grants(3);
  const company = new Company(all);
  company.leader.confirm({ since: 500, ttlMs: 1_000 });
  assert.deepEqual(
    all.map(({ validUntil }) => validUntil),
    [1_500, 1_500, 1_500],
  );
  company.leave(all[0]!);
  company.leader.confirm({ since: 800, ttlMs: 1_000 });
  assert.deepEqual(
    all.map(({ since }) => since),
    [500, 800, 800],
  );
});

test("whoever leaves has a copy of all that is known", () => {
  const all = grants(2);
  const company = new Company(all);
  const { leader } = company;
  leader.confirm({ since: 500, ttlMs: 1_000 });
  leader.expect(500, 300);
  Object.assign(leader, { renewAt: 700, failures: 2, inDangerTold: true });
  leader.renewing = Promise.resolve();
  const other = all.find((grant) => grant !== leader)!;
  company.leave(other);
  assert.deepEqual(
    [other.since, other.ttlMs, other.lifeMs, other.validUntil],
    [500, 1_000, 300, 800],
  );
  assert.deepEqual([other.renewAt, other.failures, other.inDangerTold], [700, 2, true]);
  assert.equal(other.renewing, leader.renewing);
  assert.equal(other.livesFor(1_000), false, "what was asked for last has come along");
});

test("a leader that leaves has a successor that knows what it knew, as long as anybody is there", () => {
  const all = grants(5);
  const company = new Company(all);
  for (let since = 100; company.size > 0; since += 100) {
    company.leader.confirm({ since, ttlMs: 1_000 });
    for (const grant of company.grants) assert.equal(grant.since, since);
    const { leader } = company;
    company.leave(leader);
    assert.equal(leader.since, since);
    assert.notEqual(company.leader, company.size > 0 ? leader : null);
  }
  assert.deepEqual([...new Set(all.map(({ since }) => since))].sort(), [100, 200, 300, 400, 500]);
});

test("those who come later share what is known, and the list is the same until somebody goes", () => {
  const [first, second, third, fourth] = grants(4) as [Grant, Grant, Grant, Grant];
  const company = new Company([first, second]);
  const sent = company.grants;
  const { refs } = company;
  company.leader.confirm({ since: 500, ttlMs: 1_000 });
  assert.equal(company.refs, refs);
  assert.ok(company.isStill(sent));
  company.leader.confirm({ since: 500, ttlMs: 900 });
  assert.deepEqual(
    company.refs.map(({ ttlMs }) => ttlMs),
    [900, 900],
  );
  company.add([third, fourth]);
  assert.equal(company.isStill(sent), false);
  assert.deepEqual([company.size, third.since, fourth.since], [4, 500, 500]);
  const names = () => company.refs.map(({ resource }) => resource).sort();
  assert.deepEqual(names(), ["r0", "r1", "r2", "r3"]);
  company.leave(second);
  assert.deepEqual(names(), ["r0", "r2", "r3"]);
});

test("who has sent its list keeps that, whoever leaves", () => {
  const company = new Company(grants(10));
  const sent = company.grants;
  const before = [...sent];
  for (const grant of before.slice(0, 9)) company.leave(grant);
  assert.deepEqual(sent, before);
  assert.equal(company.isStill(sent), false);
  assert.deepEqual(company.grants, [before[9]]);
});

test("in any order of coming and going, all who are there know the same", () => {
  for (let seed = 1; seed <= 200; seed++) {
    const random = randomOf(seed);
    const spare = grants(30);
    const inside = new Set(spare.splice(0, 10));
    const left = new Map<Grant, number>();
    const company = new Company([...inside]);
    for (let since = 1; inside.size > 0; since++) {
      company.leader.confirm({ since, ttlMs: 1_000 });
      if (spare.length > 0 && random(3) === 0) {
        const more = spare.splice(0, 1 + random(3));
        for (const grant of more) inside.add(grant);
        company.add(more);
      }
      const all = [...inside];
      for (const grant of all.slice(0, random(3))) {
        const gone = all[random(all.length)]!;
        if (inside.delete(gone)) {
          company.leave(gone);
          left.set(gone, since);
        }
        assert.ok(company.size === 0 || inside.has(company.leader), `seed ${seed}`);
        assert.equal(grant.company === company, inside.has(grant));
      }
      assert.equal(company.size, inside.size);
      assert.deepEqual(new Set(company.grants), inside);
      for (const grant of inside) assert.equal(grant.since, since, `seed ${seed}`);
      for (const [grant, at] of left) assert.equal(grant.since, at, `seed ${seed}`);
    }
  }
});

/** As the keeper has them, renewed at one instant. */
function renewed(all: readonly Grant[], terms: Partial<Terms> = {}): readonly Grant[] {
  const lease = { terms: { ...ACQUIRE_DEFAULTS, maxHoldMs: Infinity, ...terms } } as HeldLease;
  for (const grant of all) {
    grant.kept = true;
    grant.carry(lease);
    grant.confirm({ since: 500, ttlMs: 1_000 });
  }
  return all;
}

test("those who are akin go on in the largest company there is, and the others as they are", () => {
  const [a, b, c, d, e, f, g] = renewed(grants(7)) as [
    Grant,
    Grant,
    Grant,
    Grant,
    Grant,
    Grant,
    Grant,
  ];
  const [odd, single] = [
    renewed(grants(1), { graceMs: 7 })[0]!,
    renewed(grants(1), { renew: false })[0]!,
  ];
  const small = new Company([a, b]);
  const large = new Company([c, d, e]);
  const moved: Ward[] = [];
  const wards = joined([f, small, odd, large, single, g], (ward) => moved.push(ward));
  assert.deepEqual(new Set(wards), new Set([large, odd, single]));
  assert.deepEqual(new Set(moved), new Set([f, small, g]));
  assert.deepEqual(new Set(large.grants), new Set([a, b, c, d, e, f, g]));
  assert.deepEqual([f, small, odd, large, single, g].map(isKept), [
    ...[false, false, true, true, true, false],
  ]);
});

test("those who are alone found a company, and one alone stays alone", () => {
  const [a, b] = renewed(grants(2)) as [Grant, Grant];
  assert.deepEqual(
    joined([a], () => assert.fail()),
    [a],
  );
  const [company] = joined([a, b], () => {});
  assert.ok(company instanceof Company);
  assert.deepEqual(new Set(company.grants), new Set([a, b]));
});

test("of more kinds than are worth comparing, the rest stay alone", () => {
  const kinds = grants(20).map((grant, i) => renewed([grant], { graceMs: i })[0]!);
  const twins = grants(20).map((grant, i) => renewed([grant], { graceMs: i })[0]!);
  const wards = joined([...kinds, ...twins], () => {});
  assert.equal(wards.filter((ward) => ward instanceof Company).length, 8);
  assert.equal(wards.length, 8 + 24);
});
