import { checkTopology } from "../support/topology.fixture.js";

checkTopology("single", "node-redis");
