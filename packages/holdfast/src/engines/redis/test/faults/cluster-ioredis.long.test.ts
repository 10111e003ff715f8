import { checkFailingShards } from "../support/failing-shards.fixture.js";
import { checkMovingSlots } from "../support/moving-slots.fixture.js";

checkFailingShards(["ioredis"]);
checkMovingSlots(["ioredis"], 3);
