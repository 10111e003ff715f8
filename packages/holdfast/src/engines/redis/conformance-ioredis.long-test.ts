import { checkTopology } from "./topology.fixture.js";

checkTopology("single", "ioredis");
