import { testMomentOfFaults } from "../../../../test-support/torture/torture-test.fixture.js";
import { zookeeperPlace } from "../support/torture.fixture.js";

testMomentOfFaults("ZooKeeper", () => zookeeperPlace("session"));
