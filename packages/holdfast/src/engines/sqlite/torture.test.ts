import { test } from "node:test";
import { MOMENT, torture } from "../../torture/player.fixture.js";
import { sqlitePlace } from "./torture.fixture.js";

test("a few seconds of faults on SQLite: no law is broken", async () => {
  await using place = await sqlitePlace();
  await torture(place, MOMENT);
});
