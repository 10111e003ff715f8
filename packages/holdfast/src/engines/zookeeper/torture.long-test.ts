import { test } from "node:test";
import { MINUTE, torture } from "../../torture/player.fixture.js";
import { zookeeperPlace } from "./torture.fixture.js";

for (const hold of ["session", "ttl"] as const) {
  test(`a minute of faults on ZooKeeper, hold: "${hold}": no law is broken (seed ${MINUTE.seed})`, async () => {
    await using place = await zookeeperPlace(hold);
    await torture(place, MINUTE);
  });
}
