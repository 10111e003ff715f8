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
let door: PgbouncerServer | undefined;
const place = () => (server && door ? { server, door, listen: false } : undefined);
const harness = new PostgresHarness("postgres through PgBouncer", place, false);

before(async () => {
  server = await startPostgres();
  door = await startPgbouncer({ target: server.port });
});

after(async () => {
  await harness.end();
  await door?.stop();
  await server?.stop();
});

checkLaws(harness, test);
