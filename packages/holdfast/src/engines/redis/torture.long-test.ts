import assert from "node:assert/strict";
import { test } from "node:test";
import { judge, torture } from "./torture.fixture.js";

const TTL_MS = 1_000;
const CLAIM_WINDOW_MS = 3_000;
const SEED = Number(process.env.HOLDFAST_SEED ?? Date.now());

test(`no stale write is accepted in a minute of kills, stops and cut connections (seed ${SEED})`, async () => {
  const report = await torture({
    seed: SEED,
    forMs: 60_000,
    ttlMs: TTL_MS,
    killEveryMs: 1_000,
    cutEveryMs: 400,
    stopMs: TTL_MS + 1_500,
    wantsRefusal: true,
  });
  judge(report, TTL_MS + CLAIM_WINDOW_MS + 2_000);
  // Without one, nothing stale was ever tried, and nothing is proven.
  assert.ok(report.refused > 0, "the register refused nobody");
});

test(`nor with a failover in the middle (seed ${SEED})`, async () => {
  const report = await torture({
    seed: SEED,
    forMs: 60_000,
    ttlMs: TTL_MS,
    killEveryMs: 1_000,
    cutEveryMs: 400,
    stopMs: TTL_MS + 1_500,
    wantsRefusal: true,
    failover: true,
  });
  judge(report, TTL_MS + CLAIM_WINDOW_MS + 2_000);
  assert.ok(report.refused > 0, "the register refused nobody");
});
