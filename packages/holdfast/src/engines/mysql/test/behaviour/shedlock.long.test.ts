// The laws with hold: "shedlock".
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type MariadbServer, startMariadb } from "@holdfast/servers";
import { checkLaws, findLaw, type Harness } from "../../../../conformance/index.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { MysqlHarness } from "../support/harness.fixture.js";

const TOO_LONG = "ShedLock's column for names has 64 characters";

let server: MariadbServer | undefined;
const harness = new MysqlHarness(() => server, "shedlock", [
  ...["L9.1", "L9.2", "L9.6"].map((law) => ({ law, why: TOO_LONG, witness })),
  {
    law: "L9.3",
    why: "ShedLock's column ignores a space at the end of a name",
    witness: (harness) => findLaw("L9.3").run(harness),
  },
]);

/** The shortest name that the laws would use and the column cannot take. */
async function witness(harness: Harness): Promise<void> {
  const engine = await harness.open();
  try {
    await assert.doesNotReject(engine.tryAcquire(claim("n".repeat(65)), now()));
  } finally {
    await engine.close();
  }
}

before(async () => {
  server = await startMariadb({ args: ["--innodb-flush-log-at-trx-commit=2"] });
});

after(async () => {
  await harness.end();
  await server?.stop();
});

checkLaws(harness, test);
