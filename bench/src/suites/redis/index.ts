import type { Suite } from "../../measuring/suite.js";
import { crowd } from "../../scenarios/crowd.js";
import { distinct } from "../../scenarios/distinct.js";
import { growth } from "../../scenarios/growth.js";
import { servedHandOver } from "../../scenarios/hand-over.js";
import { localWaiters } from "../../scenarios/local-waiters.js";
import { manyLeases } from "../../scenarios/many-leases.js";
import { processWaiters } from "../../scenarios/process-waiters.js";
import { renewal } from "../../scenarios/renewal.js";
import { scatteredCrowd } from "../../scenarios/scattered-crowd.js";
import { sequential } from "../../scenarios/sequential.js";
import { holdfastIoredis, holdfastNodeRedis, holdfastParked, holdfastStrict } from "./holdfast.js";
import { peers } from "./peers.js";
import { queue } from "./queue.js";
import { rawAwake, rawIoredis, rawIoredisAuto, rawNodeRedis, rawToken } from "./raw.js";
import { requirements } from "./requirements.js";
import { CONTENDED } from "./terms.js";
import { startTestServer } from "./test-server.js";

const ours = [holdfastIoredis, holdfastNodeRedis, holdfastParked, holdfastStrict];
const raws = [rawIoredis, rawIoredisAuto, rawNodeRedis, rawToken, rawAwake];

/** One Redis on this machine, and what else its users could take. */
export const suite: Suite = {
  name: "redis",
  module: import.meta.url,
  contenders: [...ours, ...raws, queue, ...peers],
  scenarios: [
    ...[sequential, distinct, localWaiters, processWaiters, crowd, scatteredCrowd],
    ...[servedHandOver, renewal, manyLeases, growth],
  ],
  reference: rawIoredis.id,
  references: {
    ...Object.fromEntries(CONTENDED.map((scenario) => [scenario, queue.id])),
    [renewal.id]: "redlock",
    [manyLeases.id]: holdfastIoredis.id,
  },
  rounds: 3,
  warmUpMs: 4_000,
  startTestServer,
  requirements,
};
