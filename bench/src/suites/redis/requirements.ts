import type { Contender, Requirement } from "../../measuring/suite.js";
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
import { must } from "../must.js";
import { holdfastIoredis, holdfastNodeRedis, holdfastParked, holdfastStrict } from "./holdfast.js";
import { peers } from "./peers.js";
import { queue } from "./queue.js";
import { rawAwake, rawIoredis, rawIoredisAuto, rawNodeRedis } from "./raw.js";

const all = peers.map(({ id }) => id);

function bothMust(on: (one: Contender) => Requirement[]): Requirement[] {
  return [holdfastIoredis, holdfastNodeRedis].flatMap(on);
}

const bestPeer = "against the best peer";

export const requirements: readonly Requirement[] = [
  must(sequential, holdfastIoredis, "against raw ioredis, awake", {
    ...{ against: [rawAwake.id], atLeast: 0.75 },
  }),
  must(sequential, holdfastParked, "against raw ioredis", {
    ...{ against: [rawIoredis.id], atLeast: 0.85 },
  }),
  ...bothMust((one) => [
    must(sequential, one, "commands a cycle", { column: "calls", atMost: 2.02 }),
  ]),

  must(distinct, holdfastIoredis, "against raw ioredis with auto-pipelining", {
    ...{ against: [rawIoredisAuto.id], atLeast: 0.9 },
  }),
  must(distinct, holdfastNodeRedis, "against raw node-redis", {
    ...{ against: [rawNodeRedis.id], atLeast: 0.8 },
  }),
  must(distinct, holdfastNodeRedis, bestPeer, { against: all, atLeast: 1.4 }),

  ...bothMust((one) => [
    must(localWaiters, one, bestPeer, { against: all, atLeast: 20 }),
    must(localWaiters, one, "Jain", { column: "jain", atLeast: 0.99 }),
  ]),

  ...bothMust((one) => [
    must(processWaiters, one, bestPeer, { against: all, atLeast: 5 }),
    must(processWaiters, one, "Jain between processes", { column: "jainProcesses", atLeast: 0.95 }),
  ]),
  must(processWaiters, holdfastStrict, "against a bare queue", {
    ...{ against: [queue.id], atLeast: 0.7 },
  }),
  must(processWaiters, holdfastStrict, "Jain", { column: "jain", atLeast: 0.99 }),
  must(processWaiters, holdfastStrict, `p99 wait ${bestPeer}`, {
    ...{ column: "p99", against: all, atLeast: 3 },
  }),

  ...bothMust((one) => [
    must(crowd, one, "commands while idle", { column: "calls", atMost: 5 }),
    must(crowd, one, `drain ${bestPeer}`, { against: all, atLeast: 4 }),
  ]),
  ...bothMust((one) => [
    must(scatteredCrowd, one, "commands while idle", { column: "calls", atMost: 5 }),
  ]),
  ...bothMust((one) => [
    must(servedHandOver, one, "p50 in server round trips", { column: "raw50", atMost: 3.2 }),
  ]),
  ...bothMust((one) => [
    must(renewal, one, "commands", { atMost: 20 }),
    must(renewal, one, `client CPU ${bestPeer}`, { column: "cpu", against: all, atLeast: 1 }),
  ]),
  ...bothMust((one) => [must(manyLeases, one, "lost", { column: "lost", atMost: 0 })]),
  ...bothMust((one) => [
    must(growth, one, "worst cycle against one resource", { atMost: 1.2 }),
    must(growth, one, "the same in the holder's process", { column: "holder", atMost: 1.2 }),
    must(growth, one, "memory left by idle resources", { column: "leftBytes", atMost: 1 }),
    must(growth, one, "keys left by idle resources", { column: "leftKeys", atMost: 0 }),
  ]),
];
