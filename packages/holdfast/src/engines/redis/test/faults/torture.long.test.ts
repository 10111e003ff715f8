import { testMinuteOfFaults } from "../../../../test-support/torture/torture-test.fixture.js";
import { redisPlace } from "../support/torture.fixture.js";

testMinuteOfFaults("Redis", redisPlace);
