import { single } from "./harness.fixture.js";
import { checkInLanes } from "./laws.fixture.js";

checkInLanes("etcd", 5, single);
