import { test } from "node:test";
import { startEtcd } from "@holdfast/servers";
import { checkLongList } from "../../../../test-support/long-list.fixture.js";
import { fill } from "../support/names.fixture.js";
import { Ground } from "../support/test-server.fixture.js";

test("a list of 100,000 names is linear, and keeps nothing", async () => {
  await using server = await startEtcd();
  await using ground = new Ground(server);
  await checkLongList({
    engine: ground.engine(),
    pids: [server.pid],
    fill: (first, last) => fill(ground, first, last),
    mostHeapMb: 20,
  });
});
