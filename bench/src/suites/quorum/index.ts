import type { Suite } from "../../measuring/suite.js";
import { processWaiters } from "../../scenarios/process-waiters.js";
import { sequential } from "../../scenarios/sequential.js";
import { five, oneDown, redlock, single } from "./contenders.js";
import { startTestServer } from "./test-server.js";

/**
 * Redis servers that are 2 ms away: a majority of five beside one alone, and beside Redlock as it
 * is.
 */
export const suite: Suite = {
  name: "quorum",
  module: import.meta.url,
  contenders: [five, oneDown, single, redlock],
  scenarios: [sequential, processWaiters],
  reference: single.id,
  references: { [processWaiters.id]: redlock.id },
  rounds: 3,
  warmUpMs: 1_500,
  startTestServer,
  requirements: [
    {
      title: "Acquire on five nodes, p50: at most 1.3 times that on one",
      ...{ scenario: sequential.id, of: five.id, column: "p50" },
      ...{ against: [single.id], atLeast: 1 / 1.3 },
    },
    {
      title: "Acquire with one of five stopped, p50: at most 1.1 times that on five",
      ...{ scenario: sequential.id, of: oneDown.id, column: "p50" },
      ...{ against: [five.id], atLeast: 1 / 1.1 },
    },
    {
      title: "4 processes × 8 on five nodes: against redlock",
      ...{ scenario: processWaiters.id, of: five.id, against: [redlock.id], atLeast: 1 },
    },
  ],
};
