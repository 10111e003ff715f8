import { checkMovingSlots } from "../support/moving-slots.fixture.js";

checkMovingSlots([], 1);
