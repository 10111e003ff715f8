import { checkTopology } from "../support/topology.fixture.js";

checkTopology("replicated", "ioredis", { replicas: { replicas: 1, timeoutMs: 2_000 } });
