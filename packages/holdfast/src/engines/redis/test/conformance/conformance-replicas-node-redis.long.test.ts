import { checkTopology } from "../support/topology.fixture.js";

checkTopology("replicated", "node-redis", { replicas: { replicas: 1, timeoutMs: 2_000 } });
