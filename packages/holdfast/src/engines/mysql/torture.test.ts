import { testMomentOfFaults } from "../../test-support/torture/torture-test.fixture.js";
import { mysqlPlace } from "./torture.fixture.js";

testMomentOfFaults("MySQL", mysqlPlace);
