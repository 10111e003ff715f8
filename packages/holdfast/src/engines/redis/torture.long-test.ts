import { test } from "node:test";
import { MINUTE, torture } from "../../torture/player.fixture.js";
import { redisPlace } from "./torture.fixture.js";

test(`a minute of faults on Redis: no law is broken (seed ${MINUTE.seed})`, async () => {
  await using place = await redisPlace();
  await torture(place, MINUTE);
});
