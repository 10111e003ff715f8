import type { Scenario } from "../measuring/suite.js";
import { CALLS, CPU, contention, GAVE_UP, RATE, WAITS } from "./contention.js";

const WAITERS = 64;

export const distinct: Scenario = {
  id: "distinct",
  title: `${WAITERS} at once, each on its own`,
  about: `${WAITERS} loops of one process acquire and release, each a resource that nobody else wants.`,
  reach: "process",
  columns: [RATE, ...WAITS, CPU, CALLS, GAVE_UP],
  better: "more",
  ...contention({ processes: 1, waiters: WAITERS, apart: true }),
};
