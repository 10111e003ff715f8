import { test } from "node:test";
import { judge, torture } from "./torture.fixture.js";

const TTL_MS = 1_000;
const CLAIM_WINDOW_MS = 3_000;
const SEED = Number(process.env.HOLDFAST_SEED ?? 1);

test("no stale write is accepted in 10 s of kills, stops, cut connections and a failover", async () => {
  const report = await torture({
    seed: SEED,
    forMs: 10_000,
    ttlMs: TTL_MS,
    killEveryMs: 700,
    cutEveryMs: 500,
    stopMs: TTL_MS + 400,
    failover: true,
  });
  judge(report, TTL_MS + CLAIM_WINDOW_MS + 2_000);
});
