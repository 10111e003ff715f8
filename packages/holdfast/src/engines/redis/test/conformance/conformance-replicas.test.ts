// With replicas: only the laws about validity and overlapping calls. The long tests check all laws.
import { checkTopology } from "../support/topology.fixture.js";

const replicas = { replicas: 1, timeoutMs: 2_000 };

checkTopology("replicated", "node-redis", { replicas }, /^L(19\.|21\.1\d)/);
