import { checkTopology } from "./topology.fixture.js";

checkTopology("cluster", "node-redis");
