import { test } from "node:test";
import { MOMENT, torture } from "../../torture/player.fixture.js";
import { etcdPlace } from "./torture.fixture.js";

test("a few seconds of faults on etcd: no law is broken", async () => {
  await using place = await etcdPlace();
  await torture(place, MOMENT);
});
