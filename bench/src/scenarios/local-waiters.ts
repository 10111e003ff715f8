import type { Scenario } from "../measuring/suite.js";
import { CALLS, CPU, contention, FAIRNESS, GAVE_UP, RATE, WAITS } from "./contention.js";

const WAITERS = 32;

export const localWaiters: Scenario = {
  id: "local-waiters",
  title: `${WAITERS} local waiters`,
  about: `${WAITERS} waiters of one process take turns on one resource.`,
  reach: "process",
  columns: [RATE, ...WAITS, FAIRNESS, CPU, CALLS, GAVE_UP],
  better: "more",
  ...contention({ processes: 1, waiters: WAITERS }),
};
