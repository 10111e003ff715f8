import type { Scenario } from "../suite.js";
import { CPU, measureContention, RATE, WAITS } from "./contention.js";

export const sequential: Scenario = {
  id: "sequential",
  title: "Sequential cycle",
  about: "One waiter acquires and releases a resource that nobody else wants.",
  reach: "process",
  columns: [RATE, ...WAITS, CPU],
  better: "more",
  measure: (stage) => measureContention(stage, 1, 1),
};
