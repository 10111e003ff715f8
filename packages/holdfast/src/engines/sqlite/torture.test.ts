import { test } from "node:test";
import { judge, torture } from "./torture.fixture.js";

const TTL_MS = 2_000;

test("increments of 8 processes add up while one is killed every 200 ms and replaced", async () => {
  const report = await torture({
    processes: 8,
    each: 500,
    forMs: Infinity,
    ttlMs: TTL_MS,
    lingerMs: 0,
    killEveryMs: 200,
    stopMs: 0,
  });
  judge(report, TTL_MS + 1_000);
});
