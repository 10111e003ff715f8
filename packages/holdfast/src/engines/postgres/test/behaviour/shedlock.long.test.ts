// The laws with hold: "shedlock".
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type PostgresServer, startPostgres } from "@holdfast/servers";
import { checkLaws, type Harness } from "../../../../conformance/index.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { PostgresEngine, SHEDLOCK_TRAITS } from "../../engine.js";
import { resolvePostgres } from "../../options.js";
import { PostgresHarness } from "../support/harness.fixture.js";

const TOO_LONG = "ShedLock's column for names has 64 characters";

/** The shortest name that the laws would use and the column cannot take. */
async function witness(harness: Harness): Promise<void> {
  const engine = await harness.open();
  try {
    await assert.doesNotReject(engine.tryAcquire(claim("n".repeat(65)), now()));
  } finally {
    await engine.close();
  }
}

let server: PostgresServer | undefined;
const harness = new PostgresHarness("postgres with ShedLock", () => server && { server }, true, {
  traits: SHEDLOCK_TRAITS,
  query: "hold=shedlock",
  make: (pool, end) => new PostgresEngine(pool, resolvePostgres({ hold: "shedlock" }), end),
  shedlock: true,
  excuses: ["L9.1", "L9.2", "L9.6"].map((law) => ({ law, why: TOO_LONG, witness })),
});

before(async () => {
  server = await startPostgres();
});

after(async () => {
  await harness.end();
  await server?.stop();
});

checkLaws(harness, test);
