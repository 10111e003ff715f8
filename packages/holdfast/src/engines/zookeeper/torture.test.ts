import { test } from "node:test";
import { MOMENT, torture } from "../../torture/player.fixture.js";
import { zookeeperPlace } from "./torture.fixture.js";

test("a few seconds of faults on ZooKeeper: no law is broken", async () => {
  await using place = await zookeeperPlace("session");
  await torture(place, MOMENT);
});
