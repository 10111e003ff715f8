import type { Suite } from "../../measuring/suite.js";
import { longHolds, writtenHandOver } from "../../scenarios/hand-over.js";
import { processWaiters } from "../../scenarios/process-waiters.js";
import { renewal } from "../../scenarios/renewal.js";
import { sequential } from "../../scenarios/sequential.js";
import { etcdctl } from "./etcdctl.js";
import { ours, strict } from "./holdfast.js";
import { lockService } from "./lock-service.js";
import { raw } from "./raw.js";
import { startTestServer } from "./test-server.js";

/** One etcd on this machine, and the locks that it brings. */
export const suite: Suite = {
  name: "etcd",
  module: import.meta.url,
  contenders: [ours, strict, raw, etcdctl, lockService],
  scenarios: [sequential, processWaiters, writtenHandOver, longHolds, renewal],
  reference: lockService.id,
  references: {
    ...{ [sequential.id]: raw.id, [renewal.id]: ours.id },
    ...{ [writtenHandOver.id]: etcdctl.id, [longHolds.id]: etcdctl.id },
  },
  rounds: 3,
  warmUpMs: 1_500,
  startTestServer,
  requirements: [
    {
      title: "Sequential cycle: requests",
      ...{ scenario: sequential.id, of: ours.id, column: "calls", atMost: 2.1 },
    },
    {
      title: "4 processes × 8: against etcd's lock service",
      ...{ scenario: processWaiters.id, of: ours.id, against: [lockService.id], atLeast: 1 },
    },
    ...[etcdctl, lockService].map(({ id, name }) => ({
      title: `Hand-over, p50: against ${name}`,
      ...{ scenario: writtenHandOver.id, of: ours.id, against: [id], atLeast: 1 },
    })),
    {
      title: `Hand-over after long holds, p50: against ${etcdctl.name}`,
      ...{ scenario: longHolds.id, of: ours.id, against: [etcdctl.id], atLeast: 1 },
    },
    {
      title: "Hand-over, p50 in round trips of a write",
      ...{ scenario: writtenHandOver.id, of: ours.id, column: "raw50", atMost: 4 },
    },
    {
      title: "10,000 held locks: lost",
      ...{ scenario: renewal.id, of: ours.id, column: "lost", atMost: 0 },
    },
  ],
};
