import { test } from "node:test";
import { MOMENT, torture } from "../../torture/player.fixture.js";
import { redisPlace } from "./torture.fixture.js";

test("a few seconds of faults on Redis: no law is broken", async () => {
  await using place = await redisPlace();
  await torture(place, MOMENT);
});
