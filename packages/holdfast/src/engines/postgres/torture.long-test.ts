import { test } from "node:test";
import { MINUTE, torture } from "../../torture/player.fixture.js";
import { postgresPlace } from "./torture.fixture.js";

test(`a minute of faults on PostgreSQL: no law is broken (seed ${MINUTE.seed})`, async () => {
  await using place = await postgresPlace();
  await torture(place, MINUTE);
});
