import { testMomentOfFaults } from "../../../../test-support/torture/torture-test.fixture.js";
import { redisPlace } from "../support/torture.fixture.js";

testMomentOfFaults("Redis", redisPlace);
