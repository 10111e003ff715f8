import { test } from "node:test";
import { judge, torture } from "./torture.fixture.js";

const TTL_MS = 1_000;
const CLAIM_WINDOW_MS = 3_000;
const SEED = Number(process.env.HOLDFAST_SEED ?? 1);
const TERMS = {
  ...{ seed: SEED, ttlMs: TTL_MS, stopMs: TTL_MS + 400 },
  ...{ killEveryMs: 700, cutEveryMs: 500 },
};

test("no stale write is accepted in 10 s of kills, stops, cut connections and a failover", async () => {
  const report = await torture({ ...TERMS, forMs: 10_000, failover: true });
  judge(report, TTL_MS + CLAIM_WINDOW_MS + 2_000);
});

test("nor on a single server, through both clients", async () => {
  const report = await torture({ ...TERMS, forMs: 5_000 });
  judge(report, TTL_MS + CLAIM_WINDOW_MS + 2_000);
});
