import type { Scenario } from "../measuring/suite.js";
import { CALLS, CPU, contention, FAIRNESS, GAVE_UP, RATE, WAITS } from "./contention.js";

const PROCESSES = 4;
const WAITERS = 8;

export const processWaiters: Scenario = {
  id: "process-waiters",
  title: `${PROCESSES} processes × ${WAITERS} waiters`,
  about: `${PROCESSES} processes with ${WAITERS} waiters each take turns on one resource.`,
  reach: "host",
  columns: [
    ...([RATE, ...WAITS, FAIRNESS] as const),
    { key: "jainProcesses", title: "between processes", kind: "part" },
    ...([CPU, CALLS, GAVE_UP] as const),
  ],
  better: "more",
  ...contention({ processes: PROCESSES, waiters: WAITERS }),
};
