import assert from "node:assert/strict";
import { test } from "node:test";
import { torture } from "./torture.fixture.js";

const TTL_MS = 2_000;
const SESSION_MS = (TTL_MS * 4) / 3;

test("a minute of dying leaders and stopped holders: no two hold, no stale write is accepted", async () => {
  const report = await torture(60_000, TTL_MS);
  assert.ok(report.longestGapMs < SESSION_MS + 5_000, `${report.longestGapMs} ms without a write`);
});
