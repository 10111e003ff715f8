import { test } from "node:test";
import { MOMENT, torture } from "../../torture/player.fixture.js";
import { mysqlPlace } from "./torture.fixture.js";

test("a few seconds of faults on MySQL: no law is broken", async () => {
  await using place = await mysqlPlace();
  await torture(place, MOMENT);
});
