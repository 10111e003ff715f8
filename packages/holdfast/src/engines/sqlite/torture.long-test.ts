import assert from "node:assert/strict";
import { test } from "node:test";
import { addUp, judge, torture } from "./torture.fixture.js";

const TTL_MS = 1_000;
const CLAIM_WINDOW_MS = 1_500;

test("500 increments of each of 8 processes add up while one is killed every 200 ms and replaced", () =>
  addUp(500));

test("no stale write is accepted in a minute of kills every 200 ms and of holders stopped past their ttl", async () => {
  const report = await torture({
    processes: 8,
    each: Infinity,
    forMs: 60_000,
    ttlMs: TTL_MS,
    lingerMs: 20,
    killEveryMs: 200,
    stopMs: TTL_MS + 500,
  });
  judge(report, TTL_MS + CLAIM_WINDOW_MS + 2_000);
  assert.ok(report.stops > 10, `only ${report.stops} were stopped`);
  // Without one, nothing stale was ever tried, and nothing is proven.
  assert.ok(report.refused > 0, "the register refused nobody");
});
