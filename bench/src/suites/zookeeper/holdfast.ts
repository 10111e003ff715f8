import { zookeeperEngine } from "holdfast/zookeeper";
import type { Contender, OpenContext } from "../../measuring/suite.js";
import { holdfast } from "../holdfast.js";
import { sitOut } from "../terms.js";

const TRACES = { sends: ["packets"], key: (resource: string) => `/holdfast/${resource}` };
const engineOn = ({ url }: OpenContext) => zookeeperEngine({ hosts: url });

export const ours = holdfast("holdfast", "holdfast", TRACES, engineOn);

/** Without the cohort: every waiter has its own place in the server's queue, as with the peers. */
export const strict: Contender = {
  ...holdfast("holdfast-strict", "holdfast, strict", TRACES, engineOn, { fair: "strict" }),
  sitsOut: sitOut(
    ["sequential", "hand-over", "long-holds", "renewal"],
    "nobody here has a neighbour to pass a lease to",
  ),
};
