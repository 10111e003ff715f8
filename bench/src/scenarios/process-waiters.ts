import type { Scenario } from "../suite.js";
import { CPU, FAIRNESS, measureContention, RATE, WAITS } from "./contention.js";

const PROCESSES = 4;
const WAITERS = 8;

export const processWaiters: Scenario = {
  id: "process-waiters",
  title: `${PROCESSES} processes × ${WAITERS} waiters`,
  about: `${PROCESSES} processes with ${WAITERS} waiters each take turns on one resource.`,
  reach: "host",
  columns: [RATE, ...WAITS, FAIRNESS, CPU],
  better: "more",
  measure: (stage) => measureContention(stage, PROCESSES, WAITERS),
};
