import { after, before, test } from "node:test";
import { type PostgresServer, startPostgres } from "@holdfast/servers";
import { checkLaws } from "../../../../conformance/index.js";
import { PostgresHarness } from "../support/harness.fixture.js";

let server: PostgresServer | undefined;
const harness = new PostgresHarness("postgres", () => server && { server });

before(async () => {
  server = await startPostgres();
});

after(async () => {
  await harness.end();
  await server?.stop();
});

checkLaws(harness, test);
