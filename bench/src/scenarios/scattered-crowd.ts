import type { Scenario } from "../measuring/suite.js";
import { CROWD_COLUMNS, measureCrowd, WAITERS } from "./crowd.js";

export const scatteredCrowd: Scenario = {
  id: "scattered-crowd",
  title: `${WAITERS} waiters on ${WAITERS} resources`,
  about: `What ${WAITERS} waiters of one process cost, each behind a holder in another, and how long until all had their turn.`,
  reach: "host",
  columns: CROWD_COLUMNS,
  better: "less",
  measure: (stage) => measureCrowd(stage, true),
};
