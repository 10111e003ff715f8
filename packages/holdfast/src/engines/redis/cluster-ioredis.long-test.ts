import { checkFailingShards } from "./failing-shards.fixture.js";
import { checkMovingSlots } from "./moving-slots.fixture.js";

checkFailingShards(["ioredis"]);
checkMovingSlots(["ioredis"], 3);
