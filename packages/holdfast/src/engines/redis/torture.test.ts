import { testMomentOfFaults } from "../../test-support/torture/torture-test.fixture.js";
import { redisPlace } from "./torture.fixture.js";

testMomentOfFaults("Redis", redisPlace);
