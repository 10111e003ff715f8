import { test } from "node:test";
import { MINUTE, torture } from "../../torture/player.fixture.js";
import { etcdPlace } from "./torture.fixture.js";

test(`a minute of faults on etcd: no law is broken (seed ${MINUTE.seed})`, async () => {
  await using place = await etcdPlace();
  await torture(place, MINUTE);
});
