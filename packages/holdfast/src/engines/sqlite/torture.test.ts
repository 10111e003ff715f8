import { testMomentOfFaults } from "../../test-support/torture/torture-test.fixture.js";
import { sqlitePlace } from "./torture.fixture.js";

testMomentOfFaults("SQLite", sqlitePlace);
