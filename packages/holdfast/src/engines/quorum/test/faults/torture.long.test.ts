import { testMinuteOfFaults } from "../../../../test-support/torture/torture-test.fixture.js";
import { quorumPlace } from "../support/torture.fixture.js";

testMinuteOfFaults("a quorum", quorumPlace);
