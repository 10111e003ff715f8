import advisoryLock from "advisory-lock";
import type { Contender, Subject } from "../../measuring/suite.js";
import { RESOURCE } from "../terms.js";
import { NO_ROWS } from "./by-hand.js";

/** Opens a session for every lock, and closes it with the lock. */
export const advisoryLockPackage: Contender = {
  id: "advisory-lock",
  name: "advisory-lock",
  ours: false,
  reach: "host",
  sitsOut: { rows: NO_ROWS },
  async open({ url }): Promise<Subject> {
    // Made for require, so its default export is one level deeper.
    const mutexOf = advisoryLock.default(url);
    return { acquire: (resource = RESOURCE) => mutexOf(resource).lock() };
  },
};
