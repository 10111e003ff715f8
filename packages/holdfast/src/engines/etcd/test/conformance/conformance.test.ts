import { singleServer } from "../support/harness.fixture.js";
import { checkInLanes } from "../support/laws.fixture.js";

checkInLanes("etcd", 5, singleServer);
