import { checkTopology } from "../support/topology.fixture.js";

checkTopology("sentinel", "node-redis");
