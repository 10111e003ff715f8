import type { Scenario } from "../measuring/suite.js";
import { CALLS, CPU, contention, RATE, WAITS } from "./contention.js";

export const sequential: Scenario = {
  id: "sequential",
  title: "Sequential cycle",
  about: "One waiter acquires and releases a resource that nobody else wants.",
  reach: "process",
  columns: [RATE, ...WAITS, CPU, CALLS],
  better: "more",
  ...contention({ processes: 1, waiters: 1 }),
};
