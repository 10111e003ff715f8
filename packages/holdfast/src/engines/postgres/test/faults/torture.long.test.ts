import { testMinuteOfFaults } from "../../../../test-support/torture/torture-test.fixture.js";
import { postgresPlace } from "../support/torture.fixture.js";

testMinuteOfFaults("PostgreSQL", postgresPlace);
