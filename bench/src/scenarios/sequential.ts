import type { Scenario } from "../suite.js";
import { CALLS, CPU, measureContention, RATE, WAITS } from "./contention.js";

export const sequential: Scenario = {
  id: "sequential",
  title: "Sequential cycle",
  about: "One waiter acquires and releases a resource that nobody else wants.",
  reach: "process",
  columns: [RATE, ...WAITS, CPU, CALLS],
  better: "more",
  measure: (stage) => measureContention(stage, { processes: 1, waiters: 1 }),
};
