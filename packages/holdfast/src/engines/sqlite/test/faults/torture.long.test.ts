import { testMinuteOfFaults } from "../../../../test-support/torture/torture-test.fixture.js";
import { sqlitePlace } from "../support/torture.fixture.js";

testMinuteOfFaults("SQLite", sqlitePlace);
