import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { PostgresServer } from "@holdfast/servers";
import type { Suite } from "../../measuring/suite.js";
import { measuresAll, statementsOf } from "../../test/suite.fixture.js";
import { suite } from "./index.js";
import { openTestServer, startServer } from "./test-server.js";

let server: PostgresServer;
before(async () => {
  server = await startServer();
});
after(() => server.stop());

// One server for all: starting it is what takes long.
const here: Suite = { ...suite, startTestServer: () => openTestServer(server.url) };

test("every scenario measures on a real server and finds the requirements' numbers", async () => {
  await measuresAll(here, ["holdfast", "blocking"]);
});

test("every contender takes one statement to acquire and one to release, by the server's count", async () => {
  for (const { id } of suite.contenders) {
    assert.deepEqual(await statementsOf(here, id), [1, 1], id);
  }
});
