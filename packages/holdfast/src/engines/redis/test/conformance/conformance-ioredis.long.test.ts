import { checkTopology } from "../support/topology.fixture.js";

checkTopology("single", "ioredis");
