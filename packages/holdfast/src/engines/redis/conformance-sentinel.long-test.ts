import { checkTopology } from "./topology.fixture.js";

// The other client is in the short run.
checkTopology("sentinel", "node-redis");
