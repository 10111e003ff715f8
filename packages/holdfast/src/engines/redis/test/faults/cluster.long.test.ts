import { checkFailingShards } from "../support/failing-shards.fixture.js";
import { checkHandOver, checkMovingSlots } from "../support/moving-slots.fixture.js";

checkFailingShards(["node-redis"]);
checkMovingSlots(["node-redis"], 3);
checkHandOver();
