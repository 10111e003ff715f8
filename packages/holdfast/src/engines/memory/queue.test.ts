import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Claim } from "../../engine.js";
import { Queue } from "./queue.js";

test("a queue counts, lists and removes waiters as an array does, in any order of joining and leaving", () => {
  const joining = fc.record({ joins: fc.constant(true), shared: fc.boolean() });
  const leaving = fc.record({ joins: fc.constant(false), at: fc.nat(200) });
  fc.assert(
    fc.property(fc.array(fc.oneof(joining, leaving), { maxLength: 300 }), (steps) => {
      const queue = new Queue();
      const model: string[] = [];
      const modes = new Map<string, "shared" | "exclusive">();
      for (const [i, step] of steps.entries()) {
        if ("shared" in step) {
          const mode = step.shared ? "shared" : "exclusive";
          queue.join({ claim: claim(`g${i}`, mode), push: () => {} });
          model.push(`g${i}`);
          modes.set(`g${i}`, mode);
        } else {
          const [gone] = model.splice(step.at, 1);
          assert.equal(queue.leave(gone ?? "nobody")?.claim.grantId, gone);
        }
        assert.equal(queue.length, model.length);
        assert.equal(queue.first?.claim.grantId, model[0]);
        const anyShared = model.some((grantId) => modes.get(grantId) === "shared");
        assert.equal(queue.limit, anyShared ? 3 : undefined);
      }
      assert.deepEqual(
        [...queue].map((waiter) => waiter.claim.grantId),
        model,
      );
      for (const [position, grantId] of model.entries()) {
        assert.equal(queue.position(grantId), position);
      }
      assert.equal(queue.position("nobody"), -1);
    }),
    { numRuns: 300 },
  );
});

function claim(grantId: string, mode: "shared" | "exclusive"): Claim {
  const limit = mode === "shared" ? 3 : null;
  const terms = { mode, limit, ttlMs: 1_000, lockDelayMs: 0, tokens: 1, label: "" };
  return { resource: "a", grantId, ...terms };
}
