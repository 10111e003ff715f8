import assert from "node:assert/strict";
import { test } from "node:test";
import { rotate } from "../support/rotation.fixture.js";

test("nodes that forget one after the other cause no overlap and no stale write in a minute", async (t) => {
  const report = await rotate(60_000, 5_000);
  t.diagnostic(JSON.stringify(report));
  assert.ok(report.grants >= 1_000, `${report.grants} grants`);
  assert.ok(report.restarts >= 11);
});
