import { checkTopology } from "./topology.fixture.js";

checkTopology("sentinel", "ioredis");
