import { test } from "node:test";
import { keepMany } from "../support/many-leases.fixture.js";
import { ZookeeperTestServer } from "../support/test-server.fixture.js";

test("10,000 leases of one process are kept by a handful of requests a second", async () => {
  await using zookeeper = await ZookeeperTestServer.start();
  await keepMany(zookeeper, 10_000);
});
