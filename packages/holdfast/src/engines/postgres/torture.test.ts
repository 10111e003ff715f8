import { test } from "node:test";
import { MOMENT, torture } from "../../torture/player.fixture.js";
import { postgresPlace } from "./torture.fixture.js";

test("a few seconds of faults on PostgreSQL: no law is broken", async () => {
  await using place = await postgresPlace();
  await torture(place, MOMENT);
});
