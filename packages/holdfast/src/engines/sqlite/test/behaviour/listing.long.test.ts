import { test } from "node:test";
import { checkLongListing } from "../../../../test-support/cost.fixture.js";
import { sqliteEngine } from "../../index.js";
import { SqliteTestServer } from "../support/test-server.fixture.js";

test("listing 100,000 names takes little memory, and no page takes long", async () => {
  await using server = new SqliteTestServer();
  await checkLongListing(sqliteEngine({ path: server.path }));
});
