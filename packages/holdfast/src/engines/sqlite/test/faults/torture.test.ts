import { testMomentOfFaults } from "../../../../test-support/torture/torture-test.fixture.js";
import { sqlitePlace } from "../support/torture.fixture.js";

testMomentOfFaults("SQLite", sqlitePlace);
