// Of the laws with replicas, those about belief and overlapping calls; the long tests have all of them.
import { checkTopology } from "../support/topology.fixture.js";

const replicas = { replicas: 1, timeoutMs: 2_000 };

checkTopology("replicated", "node-redis", { replicas }, /^L(19\.|21\.1\d)/);
