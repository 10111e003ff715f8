import { test } from "node:test";
import { MINUTE, torture } from "../../torture/player.fixture.js";
import { sqlitePlace } from "./torture.fixture.js";

test(`a minute of faults on SQLite: no law is broken (seed ${MINUTE.seed})`, async () => {
  await using place = await sqlitePlace();
  await torture(place, MINUTE);
});
