import assert from "node:assert/strict";
import { test } from "node:test";
import { judge, torture } from "./torture.fixture.js";

const TTL_MS = 3_000;

test("nobody overlaps and no stale write is accepted in a minute of killed leaders", async () => {
  const report = await torture({
    forMs: 60_000,
    ttlMs: TTL_MS,
    killEveryMs: 5_000,
    stopMs: TTL_MS + 500,
  });
  judge(report, TTL_MS + 5_000);
  // Without one, nothing stale was ever tried, and nothing is proven.
  assert.ok(report.refused > 0, "the register refused nobody");
});
