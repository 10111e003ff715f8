import assert from "node:assert/strict";
import { test } from "node:test";
import { connect } from "../../../../connect.js";
import { sql } from "../../records/sql.gen.js";
import { SqliteTestServer } from "../support/test-server.fixture.js";

// The rows that these statements read must not grow with the number of names or waiters.
for (const name of [
  "resourcesAfter",
  "grantsOf",
  "grantOfToken",
  "waitersLimit",
  "waiterHead",
  "forcedOf",
] as const) {
  test(`${name} reads its answer from indexes and sorts nothing`, async () => {
    await using server = new SqliteTestServer();
    await (await connect(server.url)).close();
    const plan = await server.sql(`EXPLAIN QUERY PLAN ${sql[name]}`);
    const steps = plan.map(({ detail }) => String(detail));
    assert.ok(steps.some((step) => /USING (COVERING )?INDEX|USING PRIMARY KEY/.test(step)));
    for (const step of steps)
      assert.doesNotMatch(step, /TEMP B-TREE|SCAN (grants|waiters|tombstones)$/);
  });
}
