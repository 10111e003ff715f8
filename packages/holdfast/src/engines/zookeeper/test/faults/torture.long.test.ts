import { testMinuteOfFaults } from "../../../../test-support/torture/torture-test.fixture.js";
import { zookeeperPlace } from "../support/torture.fixture.js";

for (const hold of ["session", "ttl"] as const) {
  testMinuteOfFaults(`ZooKeeper, hold: "${hold}"`, () => zookeeperPlace(hold));
}
