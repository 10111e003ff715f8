import type { Suite } from "../../measuring/suite.js";
import { longHolds, writtenHandOver } from "../../scenarios/hand-over.js";
import { processWaiters } from "../../scenarios/process-waiters.js";
import { renewal } from "../../scenarios/renewal.js";
import { sequential } from "../../scenarios/sequential.js";
import { ours, strict } from "./holdfast.js";
import { curator, peers } from "./peers.js";
import { raw } from "./raw.js";
import { startTestServer } from "./test-server.js";

/** One ZooKeeper on this machine, and the locks that its users have in Python and in Java. */
export const suite: Suite = {
  name: "zookeeper",
  module: import.meta.url,
  contenders: [ours, strict, raw, ...peers],
  scenarios: [sequential, processWaiters, writtenHandOver, longHolds, renewal],
  reference: curator.id,
  references: { [sequential.id]: raw.id, [renewal.id]: ours.id },
  rounds: 3,
  warmUpMs: 1_500,
  startTestServer,
  requirements: [
    ...peers.flatMap(({ id, name }) => [
      {
        title: `Hand-over, p50: against ${name}`,
        ...{ scenario: writtenHandOver.id, of: ours.id, against: [id], atLeast: 1 },
      },
      {
        title: `Hand-over after long holds, p50: against ${name}`,
        ...{ scenario: longHolds.id, of: ours.id, against: [id], atLeast: 1 },
      },
      {
        title: `4 processes × 8: against ${name}`,
        ...{ scenario: processWaiters.id, of: ours.id, against: [id], atLeast: 1 },
      },
    ]),
    {
      title: "Sequential cycle: requests, pings included",
      ...{ scenario: sequential.id, of: ours.id, column: "calls", atMost: 3.1 },
    },
    {
      title: "Hand-over, p50 in round trips of a write",
      ...{ scenario: writtenHandOver.id, of: ours.id, column: "raw50", atMost: 2 },
    },
    {
      title: "10,000 held locks: lost",
      ...{ scenario: renewal.id, of: ours.id, column: "lost", atMost: 0 },
    },
  ],
};
