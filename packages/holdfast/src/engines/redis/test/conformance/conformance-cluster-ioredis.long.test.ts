import { checkTopology } from "../support/topology.fixture.js";

checkTopology("cluster", "ioredis");
