import { test } from "node:test";
import { MINUTE, torture } from "../../torture/player.fixture.js";
import { quorumPlace } from "./torture.fixture.js";

test(`a minute of faults on a quorum: no law is broken (seed ${MINUTE.seed})`, async () => {
  await using place = await quorumPlace();
  await torture(place, MINUTE);
});
