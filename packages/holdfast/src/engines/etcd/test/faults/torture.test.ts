import { testMomentOfFaults } from "../../../../test-support/torture/torture-test.fixture.js";
import { etcdPlace } from "../support/torture.fixture.js";

testMomentOfFaults("etcd", etcdPlace);
