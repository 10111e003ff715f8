import type { Scenario } from "../measuring/suite.js";
import { measureRenewal, RENEWAL_COLUMNS } from "./renewal.js";

const LEASES = 100_000;

export const manyLeases: Scenario = {
  id: "many-leases",
  title: `${LEASES.toLocaleString("en")} held locks kept renewed`,
  about: `The same with ${LEASES.toLocaleString("en")} locks, none of which may be lost.`,
  reach: "process",
  columns: RENEWAL_COLUMNS,
  better: "less",
  rounds: 1,
  measure: (stage) => measureRenewal(stage, LEASES),
};
