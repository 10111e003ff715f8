import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { PostgresServer } from "@holdfast/servers";
import { measuresAll, statementsOf } from "../suite.fixture.js";
import type { Suite } from "../suite.js";
import { openGround, startServer } from "./ground.js";
import { suite } from "./index.js";

let server: PostgresServer;
before(async () => {
  server = await startServer();
});
after(() => server.stop());

// One server for all: starting it is what takes long.
const here: Suite = { ...suite, startGround: () => openGround(server.url) };

test("every scenario measures on a real server and finds the requirements' numbers", async () => {
  await measuresAll(here, ["holdfast", "blocking"]);
});

test("every contender takes one statement to acquire and one to release, by the server's count", async () => {
  for (const { id } of suite.contenders) {
    assert.deepEqual(await statementsOf(here, id), [1, 1], id);
  }
});
