import { testMinuteOfFaults } from "../../test-support/torture/torture-test.fixture.js";
import { mysqlPlace } from "./torture.fixture.js";

testMinuteOfFaults("MySQL", mysqlPlace);
