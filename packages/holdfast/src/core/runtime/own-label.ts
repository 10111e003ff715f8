import { hostname } from "node:os";

/** The label of every claim of this process that has no label of its own. */
export const OWN_LABEL = `${hostname()}/${process.pid}`;
