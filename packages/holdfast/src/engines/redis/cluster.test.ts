import { checkMovingSlots } from "./moving-slots.fixture.js";

checkMovingSlots([], 1);
