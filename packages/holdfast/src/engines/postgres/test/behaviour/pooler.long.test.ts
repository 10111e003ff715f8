// All laws through PgBouncer, which lends another session for every transaction.
import { after, before, test } from "node:test";
import {
  type PgbouncerServer,
  type PostgresServer,
  startPgbouncer,
  startPostgres,
} from "@holdfast/servers";
import { checkLaws } from "../../../../conformance/index.js";
import { PostgresHarness } from "../support/harness.fixture.js";

let server: PostgresServer | undefined;
let endpoint: PgbouncerServer | undefined;
const address = () => (server && endpoint ? { server, endpoint, listen: false } : undefined);
const harness = new PostgresHarness("postgres through PgBouncer", address, false);

before(async () => {
  server = await startPostgres();
  endpoint = await startPgbouncer({ target: server.port });
});

after(async () => {
  await harness.end();
  await endpoint?.stop();
  await server?.stop();
});

checkLaws(harness, test);
