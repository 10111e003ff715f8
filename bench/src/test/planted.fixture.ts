import type { Contender, Suite } from "../measuring/suite.js";
import { localWaiters } from "../scenarios/local-waiters.js";
import { processWaiters } from "../scenarios/process-waiters.js";

const ROUND_TRIP_MS = 1;

/** Not a lock: grants every claim, after as long as a lock might take. */
const openDoor: Contender = {
  id: "open-door",
  name: "an open door",
  ours: true,
  reach: "host",
  async open() {
    const later = () => new Promise((resolve) => setTimeout(resolve, ROUND_TRIP_MS));
    return {
      acquire: async () => {
        await later();
        return later;
      },
    };
  },
};

const theirs: Contender = { ...openDoor, id: "theirs", name: "another's open door", ours: false };

/** A suite whose contenders exclude nobody. */
export const suite: Suite = {
  name: "planted",
  module: import.meta.url,
  contenders: [theirs, openDoor],
  scenarios: [localWaiters, processWaiters],
  reference: openDoor.id,
  requirements: [],
};
