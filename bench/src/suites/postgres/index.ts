import type { Suite } from "../../measuring/suite.js";
import { crowd } from "../../scenarios/crowd.js";
import { servedHandOver } from "../../scenarios/hand-over.js";
import { processWaiters } from "../../scenarios/process-waiters.js";
import { rows } from "../../scenarios/rows.js";
import { sequential } from "../../scenarios/sequential.js";
import { must } from "../must.js";
import { advisoryLockPackage } from "./advisory-lock.js";
import { blocking, polling } from "./by-hand.js";
import { holdfastAdvisory, holdfastRows } from "./holdfast.js";
import { startTestServer } from "./test-server.js";

/** One PostgreSQL on this machine, and what else its users could take. */
export const suite: Suite = {
  name: "postgres",
  module: import.meta.url,
  contenders: [holdfastRows, holdfastAdvisory, blocking, polling, advisoryLockPackage],
  scenarios: [sequential, processWaiters, crowd, servedHandOver, rows],
  reference: blocking.id,
  rounds: 3,
  warmUpMs: 1_500,
  startTestServer,
  requirements: [
    must(rows, holdfastRows, "a cycle at 100,000 rows", { atLeast: 0.75, atMost: 1.25 }),
    must(sequential, holdfastRows, "statements a cycle", { column: "calls", atMost: 2.02 }),
    must(servedHandOver, holdfastRows, "p50 in round trips of SELECT 1", {
      ...{ column: "raw50", atMost: 3 },
    }),
  ],
};
