import type { Terms } from "../../options.js";
import type { ClaimContext } from "../acquiring/claim-request.js";
import type { PendingClaim } from "../acquiring/pending-claim.js";
import type { DirectController } from "../holding/lease-controller.js";
import type { GenerationalMap } from "../runtime/generational-map.js";
import type { Cohort } from "./cohort.js";
import type { HandOverBudget } from "./hand-over.js";
import type { SharedQueues } from "./shared-queues.js";

/** What all waits of one connection share, and who waits. */
export interface WaitContext extends ClaimContext {
  readonly direct: DirectController;
  readonly budget: HandOverBudget;
  /** The terms of an acquire without options. */
  readonly defaults: Terms;
  /** The claims of callers that wait in no local queue. */
  readonly alone: Set<PendingClaim>;
  /** By resource, and by terms where they are unusual. */
  readonly cohorts: GenerationalMap<string, Cohort>;
  /** By resource. */
  readonly shared: GenerationalMap<string, SharedQueues>;
  /** Set by close(). Nobody would release a lease that is made after it. */
  isClosed: boolean;
}
