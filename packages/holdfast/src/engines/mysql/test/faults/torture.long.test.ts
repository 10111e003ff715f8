import { testMinuteOfFaults } from "../../../../test-support/torture/torture-test.fixture.js";
import { mysqlPlace } from "../support/torture.fixture.js";

testMinuteOfFaults("MySQL", mysqlPlace);
