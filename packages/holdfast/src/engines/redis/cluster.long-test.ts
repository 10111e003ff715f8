import { checkFailingShards } from "./failing-shards.fixture.js";
import { checkHandOver, checkMovingSlots } from "./moving-slots.fixture.js";

checkFailingShards(["node-redis"]);
checkMovingSlots(["node-redis"], 3);
checkHandOver();
