import { checkTopology } from "./topology.fixture.js";

checkTopology("single", "node-redis");
