import assert from "node:assert/strict";
import { test } from "node:test";
import type { Renewed } from "../../engine.js";
import { setUp } from "../test/set-up.fixture.js";

// Leases that are renewed together share their validity while they get equal answers. Engines whose
// grants live in sessions or on several nodes may answer one grant of a batch with less.

const TTL_MS = 3_000;
const LESS_MS = 800;
const NAMES = ["a", "b", "c", "d"];
const SHORTER: readonly [string, (answer: Renewed) => Renewed][] = [
  ["since", (answer) => ({ ...answer, since: answer.since - LESS_MS })],
  ["ttlMs", (answer) => ({ ...answer, ttlMs: TTL_MS - LESS_MS })],
];

for (const [field, shortened] of SHORTER) {
  for (const odd of NAMES) {
    test(`of leases renewed together, ${odd} follows its own answer with less ${field}`, async () => {
      const { clock, engine, locks } = setUp({ drift: 0, defaults: { graceMs: 0 } });
      const leases = [];
      for (const name of NAMES) leases.push(await locks.acquire(name, { ttlMs: TTL_MS }));
      await clock.advance(TTL_MS * 0.37);
      assert.equal(engine.calls("renew"), 1, "they were not renewed together");
      const ends = new Map<string, number>();
      const renew = engine.renew.bind(engine);
      engine.renew = async (refs, call) => {
        const answers = await renew(refs, call);
        return answers.map((answer, i) => {
          if (answer.kind !== "renewed") return answer;
          const { resource } = refs[i]!;
          const told = resource === odd ? shortened(answer) : answer;
          ends.set(resource, told.since + told.ttlMs);
          return told;
        });
      };
      for (let i = 0; i < 60; i++) {
        await clock.advance(50);
        for (const lease of leases) {
          const end = ends.get(lease.resource) ?? Infinity;
          const overMs = clock.now() + lease.remainingMs() - end;
          assert.ok(!lease.held || overMs <= 0, `${lease.resource}: ${overMs} ms too many`);
        }
      }
      assert.equal(ends.size, NAMES.length);
      assert.ok(leases.every(({ held }) => held));
    });
  }
}
