import { test } from "node:test";
import { startEtcd } from "@holdfast/servers";
import { checkLongList } from "../../../../test-support/long-list.fixture.js";
import { fill } from "../support/names.fixture.js";
import { EtcdTestServer } from "../support/test-server.fixture.js";

test("a list of 100,000 names takes linear time, and keeps no memory", async () => {
  await using server = await startEtcd();
  await using testServer = new EtcdTestServer(server);
  await checkLongList({
    engine: testServer.engine(),
    pids: [server.pid],
    fill: (first, last) => fill(testServer, first, last),
    mostHeapMb: 20,
  });
});
