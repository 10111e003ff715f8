import { test } from "node:test";
import { MINUTE, torture } from "../../torture/player.fixture.js";
import { mysqlPlace } from "./torture.fixture.js";

test(`a minute of faults on MySQL: no law is broken (seed ${MINUTE.seed})`, async () => {
  await using place = await mysqlPlace();
  await torture(place, MINUTE);
});
