import { testMomentOfFaults } from "../../../../test-support/torture/torture-test.fixture.js";
import { postgresPlace } from "../support/torture.fixture.js";

testMomentOfFaults("PostgreSQL", postgresPlace);
