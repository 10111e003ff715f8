import { after, before, test } from "node:test";
import { type MariadbServer, startMariadb } from "@holdfast/servers";
import { checkLaws } from "../../../../conformance/index.js";
import { MysqlHarness } from "../support/harness.fixture.js";

let server: MariadbServer | undefined;
const harness = new MysqlHarness(() => server);

before(async () => {
  // A restart must find what was acknowledged.
  server = await startMariadb({ args: ["--innodb-flush-log-at-trx-commit=2"] });
});

after(async () => {
  await harness.end();
  await server?.stop();
});

checkLaws(harness, test);
