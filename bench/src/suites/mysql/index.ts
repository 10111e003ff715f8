import type { Suite } from "../../measuring/suite.js";
import { crowd } from "../../scenarios/crowd.js";
import { servedHandOver } from "../../scenarios/hand-over.js";
import { processWaiters } from "../../scenarios/process-waiters.js";
import { rows } from "../../scenarios/rows.js";
import { sequential } from "../../scenarios/sequential.js";
import { must } from "../must.js";
import { getLock } from "./get-lock.js";
import { holdfast } from "./holdfast.js";
import { startTestServer } from "./test-server.js";

/** One MariaDB on this machine, and what else its users could take. */
export const suite: Suite = {
  name: "mysql",
  module: import.meta.url,
  contenders: [holdfast, getLock],
  scenarios: [sequential, processWaiters, crowd, servedHandOver, rows],
  reference: getLock.id,
  rounds: 3,
  warmUpMs: 1_500,
  startTestServer,
  requirements: [
    must(rows, holdfast, "a cycle at 100,000 rows", { atLeast: 0.75, atMost: 1.25 }),
    must(sequential, holdfast, "statements a cycle", { column: "calls", atMost: 2.02 }),
    must(servedHandOver, holdfast, "p50", { atMost: 15 }),
    // Fewer than a hundred a second.
    must(crowd, holdfast, "statements while idle", { column: "calls", atMost: 99 }),
  ],
};
